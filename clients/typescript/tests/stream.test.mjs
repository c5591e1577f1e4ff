// A stream of mail against a stand-in: what a real broker does only now and then.

import assert from "node:assert/strict";
import test from "node:test";
import { DeliveryState, Reason } from "../dist/gen/v1.js";
import { failure, fired } from "./broker.mjs";
import { Fake, refusal } from "./fake.mjs";

const lease = (token) => ({ leaseToken: token, delivery: { message: { body: token }, attempt: 1 } });
const step = (name, value) => ({ step: { case: name, value } });
const opened = (...tokens) => step("opened", { deliveries: tokens.map(lease), complete: true });
const acked = (count = 1) => {
  const result = { result: { case: "state", value: DeliveryState.ACKED } };
  return step("settled", { results: Array(count).fill(result) });
};

/** Starts a stand-in that runs one script for each stream, and the mail of a client. */
async function mail(t, ...scripts) {
  const opens = [];
  const fake = await Fake.start(t, {
    async *streamDeliveries(requests, context) {
      const script = scripts[Math.min(opens.length, scripts.length - 1)];
      const steps = requests[Symbol.asyncIterator]();
      const read = async () => (await steps.next()).value?.step;
      opens.push((await read()).value);
      yield* script({ read, fake, context });
    },
  });
  return { fake, opens, mail: fake.hive.mail({ streamId: "mine", window: 8 }) };
}

const next = async (mail) => (await mail.next()).value;

/** Reads to the end of the requests, as the broker does at a half-close. */
async function untilClosed(read) {
  while (await read());
}

test("after a break the list decides what is lost, known and new", async (t) => {
  let cut;
  const { mail: stream, opens } = await mail(
    t,
    async function* ({ read, fake }) {
      yield opened();
      yield step("leased", { deliveries: ["kept", "gone", "sent"].map(lease) });
      cut = () => fake.cut();
      await untilClosed(read);
    },
    async function* ({ read }) {
      yield step("opened", { deliveries: [lease("kept")] });
      yield step("opened", { deliveries: [lease("new")], complete: true });
      const { value } = await read();
      assert.deepEqual(value.settlements.map(({ target }) => target.value), ["sent"]);
      yield acked();
      await untilClosed(read);
    },
  );
  const [kept, gone, sent] = [await next(stream), await next(stream), await next(stream)];
  const settled = sent.ack();
  cut();
  await fired(gone.signal);
  assert.equal(gone.signal.reason.reason, "LEASE_LOST");
  assert.equal(kept.signal.aborted, false);
  assert.equal(await settled, DeliveryState.ACKED);
  assert.equal((await next(stream)).token, "new");
  assert.deepEqual(opens.map(({ streamId }) => streamId), ["mine", "mine"]);
  await stream.close();
});

test("settlements of a break go again in their order", async (t) => {
  const orders = [];
  const { mail: stream } = await mail(
    t,
    async function* ({ read, fake }) {
      yield opened("a", "b", "c");
      await read();
      fake.cut();
    },
    async function* ({ read }) {
      yield opened();
      for (let request = await read(); request; request = await read()) {
        const tokens = request.value.settlements.map(({ target }) => target.value);
        orders.push(tokens);
        for (const token of tokens) yield token === "b" ? lost() : acked();
      }
    },
  );
  const held = [await next(stream), await next(stream), await next(stream)];
  const [a, b, c] = await Promise.allSettled(held.map((delivery) => delivery.ack()));
  assert.deepEqual([a.value, c.value], [DeliveryState.ACKED, DeliveryState.ACKED]);
  assert.equal(b.reason.reason, "LEASE_LOST");
  assert.equal(b.reason.code, "FAILED_PRECONDITION");
  assert.deepEqual(orders.flat(), ["a", "b", "c"]);
  await stream.close();
});

const lost = (reason = Reason.LEASE_LOST) => {
  const value = { reason, message: "no", metadata: { k: "v" } };
  return step("settled", { results: [{ result: { case: "refusal", value } }] });
};

test("a refusal with an unknown reason is an error as it is", async (t) => {
  const { mail: stream } = await mail(t, async function* ({ read }) {
    yield opened("a");
    await read();
    yield lost(4711);
    await untilClosed(read);
  });
  const delivery = await next(stream);
  const error = await failure(delivery.ack());
  assert.deepEqual([error.code, error.reason, error.metadata], ["UNKNOWN", "4711", { k: "v" }]);
  assert.equal(delivery.signal.aborted, true);
  await stream.close();
});

test("a ping is answered, and unknown steps are ignored", async (t) => {
  let answered;
  const pong = new Promise((resolve) => (answered = resolve));
  const { mail: stream } = await mail(t, async function* ({ read }) {
    yield opened();
    yield { step: { case: undefined } };
    yield step("ping", {});
    answered(await read());
    await untilClosed(read);
  });
  assert.equal((await pong).case, "pong");
  await stream.close();
});

test("the stream opens again after STREAM_SILENT, DRAINING and a clean end", async (t) => {
  const fails = (error) =>
    async function* () {
      yield opened();
      if (error) throw error;
    };
  const { mail: stream, opens } = await mail(
    t,
    fails(refusal("Aborted", "STREAM_SILENT")),
    fails(refusal("Unavailable", "DRAINING", { retryMs: 1 })),
    fails(),
    fails(new Error("a fault of the transport")),
    async function* ({ read }) {
      yield opened("a");
      await untilClosed(read);
    },
  );
  assert.equal((await next(stream)).token, "a");
  assert.equal(opens.length, 5);
  await stream.close();
});

for (const [code, reason] of [
  ["FailedPrecondition", "HARNESS_ATTACHED"],
  ["PermissionDenied", "CAPABILITY_MISSING"],
  ["NotFound", "AGENT_RETIRED"],
  ["Aborted", "SOMETHING_NEW"],
]) {
  test(`${reason} ends the mail, and what it holds is lost`, async (t) => {
    let refuse;
    const refused = new Promise((resolve) => (refuse = resolve));
    const { mail: stream } = await mail(t, async function* () {
      yield opened("a", "b", "c");
      await refused;
      throw refusal(code, reason);
    });
    const held = await next(stream);
    const settling = await next(stream);
    const pending = failure(settling.ack());
    refuse();
    await fired(held.signal);
    assert.equal((await pending).reason, reason);
    assert.equal((await failure(held.ack())).reason, "LEASE_LOST");
    assert.equal((await failure(stream.next())).reason, reason, "what was not handed out is lost");
    await stream.close();
  });
}

test("close waits for results under way, and half-closes after them", async (t) => {
  const order = [];
  let result;
  const answered = new Promise((resolve) => (result = resolve));
  const { mail: stream } = await mail(t, async function* ({ read }) {
    yield opened("a", "b");
    order.push((await read()).case);
    await answered;
    yield acked();
    order.push(await read());
  });
  const [a, b] = [await next(stream), await next(stream)];
  const settled = a.ack().then((state) => order.push(state));
  const closed = stream.close();
  assert.equal(b.signal.reason.code, "CANCELLED");
  result();
  await Promise.all([settled, closed]);
  assert.deepEqual(order.toSorted(), ["settle", DeliveryState.ACKED, undefined].toSorted());
});

test("a hive that closes gives its mail the time for results", async (t) => {
  const { fake, mail: stream } = await mail(t, async function* ({ read }) {
    yield opened("a");
    await read();
    yield acked();
    await untilClosed(read);
  });
  const settled = (await next(stream)).ack();
  await fake.hive.close();
  assert.equal(await settled, DeliveryState.ACKED);
});
