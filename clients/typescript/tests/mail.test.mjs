// Mail of a real broker: settlements, breaks, and the ends of a stream.

import { once } from "node:events";
import assert from "node:assert/strict";
import test from "node:test";
import { connect } from "../dist/index.js";
import { DeliveryState, EventKind, InboxService, RedeliveryCause } from "../dist/gen/v1.js";
import { Broker, failure, fired } from "./broker.mjs";
import { Proxy } from "./proxy.mjs";

/** Starts a hive with these messages in the inbox of bob. */
async function inbox(t, ...bodies) {
  const broker = await Broker.start(t);
  const [ada, bob] = [broker.connect("ada"), broker.connect("bob")];
  for (const body of bodies) await ada.send("bob", body);
  return { broker, ada, bob };
}

const next = async (mail) => (await mail.next()).value;
const counts = (hive) => hive.call(InboxService.method.getInboxStatus, {});

test("a delivery is acked, nacked or released, once", async (t) => {
  const { bob } = await inbox(t, "one", "two", "three");
  await using(bob.mail(), async (mail) => {
    const [one, two, three] = [await next(mail), await next(mail), await next(mail)];
    assert.deepEqual([one.message.body, one.attempt, one.redeliveryCause], ["one", 1, undefined]);
    assert.equal(await one.ack(), DeliveryState.ACKED);
    const twice = await failure(one.nack("again"));
    assert.deepEqual([twice.code, twice.reason], ["FAILED_PRECONDITION", ""]);
    assert.equal(await two.nack("é".repeat(4000), { permanent: true }), DeliveryState.DEAD);
    assert.equal(await three.release(), DeliveryState.READY);
    const again = await next(mail);
    assert.deepEqual([again.message.body, again.attempt], ["three", 1]);
    assert.equal(again.redeliveryCause, RedeliveryCause.NOT_RECEIVED);
    assert.equal(await again.nack("no"), DeliveryState.READY);
  });
  const { deadCount, readyCount, leasedCount } = await counts(bob);
  assert.deepEqual([deadCount, readyCount, leasedCount], [1, 1, 0]);
});

test("a loop that is left releases what it holds", async (t) => {
  const { bob } = await inbox(t, "one", "two");
  let kept;
  for await (const delivery of bob.mail()) {
    kept = delivery;
    break;
  }
  assert.equal(kept.signal.aborted, true);
  assert.equal((await failure(kept.ack())).code, "CANCELLED");
  const mail = bob.mail();
  for (const body of ["one", "two"]) {
    const delivery = await next(mail);
    assert.deepEqual([delivery.message.body, delivery.attempt], [body, 1]);
  }
  await Promise.all([mail.close(), mail.close()]);
  assert.deepEqual(await mail.next(), { done: true, value: undefined });
});

test("each acks, nacks, and cancels at close", async (t) => {
  const { bob, ada } = await inbox(t, "good", "bad", "slow");
  const warned = once(process, "warning");
  const mail = bob.mail({ window: 3 });
  let slow;
  const begun = new Promise((resolve) => (slow = resolve));
  const done = mail.each(async ({ message, signal }) => {
    if (message.body === "bad") throw new Error("handler failed");
    if (message.body !== "slow") return;
    slow(signal);
    await fired(signal);
  });
  const signal = await begun;
  await ada.send("bob", "more");
  await mail.close();
  await done;
  assert.equal(signal.reason.code, "CANCELLED");
  const [warning] = await warned;
  assert.match(String(warning), /^HiveWarning: The handler of message \d+ failed: Error: handler f/);
  const { deliveries } = await bob.call(InboxService.method.listDeliveries, {});
  const left = deliveries.map(({ message, lastError }) => [message.body, lastError]);
  const expected = [["bad", "handler failed"], ["slow", ""]];
  assert.deepEqual(left.filter(([body]) => body !== "more"), expected);
});

test("settlements that are made together are committed together", async (t) => {
  const { ada, bob } = await inbox(t);
  await Promise.all(Array.from({ length: 200 }, (_, i) => ada.send("bob", `m${i}`)));
  const mail = bob.mail({ window: 200 });
  const held = [];
  while (held.length < 200) held.push(await next(mail));
  // With the longest errors all of them together are more than a request may have.
  const nacks = held.map((delivery) => delivery.nack("x".repeat(5000), { permanent: true }));
  assert.deepEqual(new Set(await Promise.all(nacks)), new Set([DeliveryState.DEAD]));
  await mail.close();
});

test("leases and settlements outlive a kill of the broker", async (t) => {
  const { broker, ada, bob } = await inbox(t, "one", "two", "three");
  const mail = bob.mail();
  const [one, two, three] = [await next(mail), await next(mail), await next(mail)];
  const settled = one.ack();
  await broker.stop();
  const later = two.ack();
  const sent = ada.send("bob", "four");
  await broker.start();
  assert.deepEqual([await settled, await later], [DeliveryState.ACKED, DeliveryState.ACKED]);
  assert.equal(three.signal.aborted, false);
  assert.equal(await three.ack(), DeliveryState.ACKED);
  await sent;
  const four = await next(mail);
  assert.deepEqual([four.message.body, await four.ack()], ["four", DeliveryState.ACKED]);
  await mail.close();
  const { readyCount, leasedCount } = await counts(bob);
  assert.deepEqual([readyCount, leasedCount], [0, 0]);
});

test("a lease that ended during a break is lost", async (t) => {
  const { broker, bob } = await inbox(t, "one", "two");
  const proxy = await Proxy.start(t, broker.socket("bob"));
  const hive = connect(proxy.path);
  const mail = hive.mail({ orphanGraceMs: 1 });
  const [one, two] = [await next(mail), await next(mail)];
  const events = bob.follow();
  await events.opened;
  proxy.open = false;
  proxy.cut();
  const settled = failure(two.ack());
  for (let returned = 0; returned < 2; ) {
    const { value } = await events.next();
    if (value.event.kind === EventKind.DELIVERY_RETURNED) returned++;
  }
  proxy.open = true;
  assert.equal((await settled).reason, "LEASE_LOST");
  await fired(one.signal);
  assert.equal((await failure(one.ack())).reason, "LEASE_LOST");
  await hive.close();
});

test("a newer stream of the same name ends the mail", async (t) => {
  const { bob } = await inbox(t, "one");
  const mail = bob.mail({ streamId: "mine" });
  const delivery = await next(mail);
  const ended = mail.each(() => {});
  const newer = bob.mail({ streamId: "mine" });
  assert.equal((await failure(ended)).reason, "STREAM_REPLACED");
  await fired(delivery.signal);
  assert.equal((await failure(delivery.ack())).reason, "LEASE_LOST");
  assert.equal((await next(newer)).token, delivery.token);
  assert.equal((await failure(mail.next())).reason, "STREAM_REPLACED");
  await Promise.all([mail.close(), newer.close()]);
});

test("a refusal ends the mail: the operator has none", async (t) => {
  const { broker } = await inbox(t);
  const operator = broker.connect();
  assert.equal((await failure(operator.mail().next())).reason, "NOT_AN_AGENT");
});

test("a close without the broker ends", async (t) => {
  const { broker, bob } = await inbox(t, "one");
  const mail = bob.mail();
  await (await next(mail)).ack();
  await broker.stop();
  await mail.close();
  assert.equal((await mail.next()).done, true);
  const waiting = bob.mail();
  await waiting.close();
  await broker.start();
});

test("nothing is lost or doubled while the broker is killed", async (t) => {
  const { broker, ada, bob } = await inbox(t);
  const handled = [];
  const mail = bob.mail({ window: 4 });
  const reading = (async () => {
    const settled = [];
    while (handled.length < 120) {
      const delivery = await next(mail);
      handled.push(delivery.message.body);
      settled.push(delivery.ack());
    }
    return Promise.all(settled);
  })();
  const bodies = Array.from({ length: 120 }, (_, i) => `m${i}`);
  for (let round = 0; round < 6; round++) {
    const sends = bodies.slice(20 * round, 20 * round + 20).map((body) => ada.send("bob", body));
    if (round % 2 === 0) await Promise.race(sends);
    await broker.stop(round === 3 ? "SIGTERM" : "SIGKILL");
    await broker.start();
    const receipts = await Promise.all(sends);
    assert.equal(new Set(receipts.map(({ messageId }) => messageId)).size, 20);
  }
  assert.deepEqual(new Set(await reading), new Set([DeliveryState.ACKED]));
  await mail.close();
  assert.deepEqual(handled.toSorted(), bodies.toSorted());
  const { readyCount, leasedCount } = await counts(bob);
  assert.deepEqual([readyCount, leasedCount], [0, 0]);
});

/** Runs work with a resource, as `await using` does. */
async function using(resource, work) {
  try {
    await work(resource);
  } finally {
    await resource[Symbol.asyncDispose]();
  }
}
