// The rule that repeats calls, and the errors that it ends with.

import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { HiveError } from "../dist/index.js";
import { InboxService, MessageService } from "../dist/gen/v1.js";
import { failure } from "./broker.mjs";
import { Fake, refusal } from "./fake.mjs";

/** Starts a stand-in whose sends are answered by these, in turn: errors, answers, functions. */
async function sends(t, ...answers) {
  const seen = [];
  const fake = await Fake.start(t, {
    sendMessage(request, context) {
      seen.push({ id: request.requestId, at: performance.now() });
      const answer = answers[Math.min(seen.length, answers.length) - 1];
      if (answer instanceof Error) throw answer;
      return typeof answer === "function" ? answer(fake, context) : answer;
    },
  });
  return { fake, hive: fake.hive, seen };
}

/** Answers never; ends with its call. */
const hang = async (_, { signal }) => {
  if (!signal.aborted) await once(signal, "abort");
  throw signal.reason;
};

test("a refusal that is soon over is repeated with the same request id", async (t) => {
  const { hive, seen } = await sends(
    t,
    refusal("Unavailable", "STARTING"),
    refusal("ResourceExhausted", "CALL_LIMIT"),
    refusal("Unavailable", "STORAGE_UNAVAILABLE", { retryMs: 200 }),
    { messageId: 7n },
  );
  assert.equal((await hive.send("bob", "x")).messageId, 7n);
  assert.equal(seen.length, 4);
  assert.equal(new Set(seen.map(({ id }) => id)).size, 1);
  assert.match(seen[0].id, /^[0-9a-f]{12}-\d+$/);
  assert.ok(seen[3].at - seen[2].at >= 199, "the delay of the broker");
});

test("a status of the transport is repeated, and so is that of another domain", async (t) => {
  const { hive, seen } = await sends(
    t,
    new ConnectError("gone", Code.Unavailable),
    new ConnectError("late", Code.DeadlineExceeded),
    refusal("Unavailable", "WHATEVER", { domain: "example.com" }),
    { messageId: 7n },
  );
  await hive.send("bob", "x");
  assert.equal(seen.length, 4);
});

test("an answer that is lost with its connection is asked for again", async (t) => {
  const cut = (fake, context) => {
    fake.cut();
    return hang(fake, context);
  };
  const { fake, hive, seen } = await sends(t, cut, cut, { messageId: 7n });
  await hive.send("bob", "x");
  assert.equal(new Set(seen.map(({ id }) => id)).size, 1);
  assert.equal(fake.hellos.length, 3, "each connection has its handshake");
});

for (const [code, reason] of [
  ["Unavailable", "NEW_REASON"],
  ["ResourceExhausted", "RATE_LIMITED"],
  ["Internal", "INTERNAL"],
  ["Unimplemented", "METHOD_NOT_SERVED"],
  ["NotFound", "AGENT_NOT_FOUND"],
]) {
  test(`${reason} is not repeated`, async (t) => {
    const { hive, seen } = await sends(t, refusal(code, reason, { retryMs: 10 }));
    const error = await failure(hive.send("bob", "x"));
    assert.ok(error instanceof HiveError);
    assert.equal(error.reason, reason);
    assert.equal(error.retryAfterMs, 10);
    assert.equal(seen.length, 1);
  });
}

test("a status without details is not repeated", async (t) => {
  const { hive, seen } = await sends(t, new ConnectError("what?", Code.Unimplemented));
  const error = await failure(hive.send("bob", "x"));
  assert.deepEqual([error.code, error.reason, error.retryAfterMs], ["UNIMPLEMENTED", "", undefined]);
  assert.equal(seen.length, 1);
});

test("an error has the facts of the refusal", async (t) => {
  const fields = [{ field: "body", description: "a message needs a text" }];
  const metadata = { field: "body" };
  const { hive } = await sends(t, refusal("InvalidArgument", "FIELD_INVALID", { fields, metadata }));
  const error = await failure(hive.send("bob", ""));
  assert.equal(error.code, "INVALID_ARGUMENT");
  assert.deepEqual(error.metadata, metadata);
  assert.deepEqual(error.fields, fields);
  assert.equal(String(error), "HiveError: INVALID_ARGUMENT FIELD_INVALID: refused: FIELD_INVALID");
});

test("the budget ends with the last refusal", async (t) => {
  const { hive, seen } = await sends(t, refusal("Unavailable", "STARTING"), hang);
  const error = await failure(hive.send("bob", "x", { timeoutMs: 300 }));
  assert.equal(error.reason, "STARTING");
  assert.equal(seen.length, 2);
});

test("a pause that is longer than the budget ends the call at once", async (t) => {
  const { hive } = await sends(t, refusal("Unavailable", "DRAINING", { retryMs: 60_000 }));
  const begun = performance.now();
  const error = await failure(hive.send("bob", "x", { timeoutMs: 30_000 }));
  assert.equal(error.reason, "DRAINING");
  assert.ok(performance.now() - begun < 5_000);
});

test("a call without an answer ends with its budget", async (t) => {
  const { hive } = await sends(t, hang);
  const error = await failure(hive.send("bob", "x", { timeoutMs: 100 }));
  assert.deepEqual([error.code, error.reason], ["DEADLINE_EXCEEDED", ""]);
});

test("a signal ends a call at once, in an attempt and in a pause", async (t) => {
  let begin;
  const begun = new Promise((resolve) => (begin = resolve));
  const hangs = (fake, context) => (begin(), hang(fake, context));
  const { hive } = await sends(t, refusal("Unavailable", "STARTING", { retryMs: 60_000 }), hangs);
  for (const wait of [Promise.resolve(), begun]) {
    const controller = new AbortController();
    const options = { signal: controller.signal, timeoutMs: 3_600_000 };
    const call = hive.send("bob", "x", options);
    if (wait === begun) void hive.send("bob", "y").catch(() => {});
    await wait;
    controller.abort("enough");
    const error = await failure(call);
    assert.deepEqual([error.code, error.cause], ["CANCELLED", "enough"]);
  }
  const error = await failure(hive.send("bob", "x", { signal: AbortSignal.abort() }));
  assert.equal(error.code, "CANCELLED");
});

test("the deadline of an attempt has the wait of the request on top", async (t) => {
  const waits = [];
  const fake = await Fake.start(t, {
    receiveMessages(_, context) {
      waits.push(context.timeoutMs());
      return {};
    },
  });
  const { receiveMessages } = InboxService.method;
  const options = { timeoutMs: 3_600_000 };
  await fake.hive.call(receiveMessages, { wait: { seconds: 20n } }, options);
  await fake.hive.call(receiveMessages, {}, options);
  assert.ok(waits[0] > 29_000 && waits[0] <= 30_000, String(waits[0]));
  assert.ok(waits[1] > 9_000 && waits[1] <= 10_000, String(waits[1]));
});

test("a request is copied, and its own id is kept", async (t) => {
  const { hive, seen } = await sends(t, { messageId: 7n });
  const request = { to: { to: { case: "agent", value: "bob" } }, body: "x" };
  await hive.call(MessageService.method.sendMessage, request);
  await hive.call(MessageService.method.sendMessage, request);
  await hive.send("bob", "x", { requestId: "mine" });
  assert.notEqual(seen[0].id, seen[1].id);
  assert.equal(seen[2].id, "mine");
  assert.equal("requestId" in request, false);
});

test("a value that does not fit its field is refused without a call", async (t) => {
  const { hive, seen } = await sends(t, {});
  const error = await failure(hive.send("bob", 12));
  assert.equal(error.code, "INVALID_ARGUMENT");
  assert.throws(() => hive.mail({ window: 1.5 }), { code: "INVALID_ARGUMENT" });
  assert.equal((await failure(hive.send("bob", "x", { timeoutMs: 0 }))).code, "INVALID_ARGUMENT");
  assert.equal(seen.length, 0);
});
