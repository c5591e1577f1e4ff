// Questions and their outcomes, the event log, and the other verbs, with a real broker.

import assert from "node:assert/strict";
import test from "node:test";
import { EventKind, LooseEndService, QuestionState, ReminderState } from "../dist/gen/v1.js";
import { EVERYONE, OPERATOR, PARENT } from "../dist/index.js";
import { Broker, failure } from "./broker.mjs";

async function hive(t) {
  const broker = await Broker.start(t);
  return { broker, ada: broker.connect("ada"), bob: broker.connect("bob") };
}

test("an outcome is waited for over a kill of the broker", async (t) => {
  const { broker, ada, bob } = await hive(t);
  const asked = await ada.ask("bob", "Deploy?", { options: ["yes", "no"], ttlMs: 60_000 });
  assert.equal(asked.question.state, QuestionState.OPEN);
  assert.equal((await failure(asked.outcome({ timeoutMs: 50 }))).code, "DEADLINE_EXCEEDED");
  const outcome = asked.outcome();
  await broker.stop();
  await broker.start();
  await bob.answer(asked.question.id, { choices: ["yes"], text: "now" });
  const { state, answer } = await outcome;
  assert.equal(state, QuestionState.ANSWERED);
  assert.deepEqual([answer.choices, answer.text], [["yes"], "now"]);
  assert.equal((await asked.outcome()).state, QuestionState.ANSWERED);
  const closed = await failure(bob.answer(asked.question.id, { text: "again" }));
  assert.equal(closed.reason, "QUESTION_CLOSED");
  const cancelled = failure((await ada.ask(OPERATOR, "Well?")).outcome());
  await ada.close();
  assert.equal((await cancelled).code, "CANCELLED");
});

test("events go on after a break: none twice, none missed", async (t) => {
  const { broker, ada, bob } = await hive(t);
  const events = bob.follow();
  await events.opened;
  const ids = [];
  const seen = [];
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 5; i++) ids.push((await ada.send("bob", `m${ids.length}`)).messageId);
    while (seen.length < 5 * round + 3) seen.push((await events.next()).value);
    await broker.stop();
    await broker.start();
  }
  while (seen.length < ids.length) seen.push((await events.next()).value);
  assert.deepEqual(new Set(seen.map(({ kind }) => kind)), new Set(["fact"]));
  assert.deepEqual(seen.map(({ event }) => event.messageId), ids);
  assert.deepEqual(new Set(seen.map(({ event }) => event.kind)), new Set([EventKind.MESSAGE_ACCEPTED]));
  await events.close();
  assert.deepEqual(await events.next(), { done: true, value: undefined });

  const resumed = bob.follow({ after: seen[9].position });
  assert.equal((await resumed.next()).value.event.messageId, ids[10]);
  await resumed.close();
});

test("a position of another log is answered with the present one", async (t) => {
  const { ada, bob } = await hive(t);
  const events = bob.follow({ after: { logId: "0".repeat(32), sequence: 3n } });
  const { value } = await events.next();
  assert.equal(value.kind, "logChanged");
  await ada.send("bob", "x");
  assert.equal((await events.next()).value.kind, "fact");
  await events.close();
});

test("a follower ends with a refusal, a signal, or its client", async (t) => {
  const { ada, bob } = await hive(t);
  assert.equal((await failure(ada.follow({ agent: "bob" }).next())).reason, "NOT_YOURS");
  const controller = new AbortController();
  const events = ada.follow({ signal: controller.signal });
  await events.opened;
  controller.abort();
  assert.equal((await failure(events.next())).code, "CANCELLED");
  const others = bob.follow();
  const next = others.next();
  await bob.close();
  assert.equal((await next).done, true);
});

test("the other verbs reach the broker", async (t) => {
  const { ada, bob } = await hive(t);
  const first = await ada.send("bob", "hello");
  const reply = await bob.send("ada", "hi", { inReplyTo: first.messageId });
  assert.ok(reply.messageId > first.messageId);
  assert.equal((await ada.send(EVERYONE, "all")).recipientCount, 1);
  assert.equal((await ada.send(PARENT, "up")).recipientCount, 1);
  const reminder = await ada.remind("later", 60_000);
  assert.equal(reminder.state, ReminderState.PENDING);
  await ada.remind("at a time", new Date(Date.now() + 60_000));
  const wake = await ada.wake("matrix", "one", { coalescingKey: "k" });
  const newer = await ada.wake("matrix", "two", { coalescingKey: "k" });
  assert.equal(newer.supersededMessageId, wake.messageId);
  await ada.publish("matrix", [{ key: "k", text: "a loose end" }]);
  const { looseEnds } = await ada.call(LooseEndService.method.listLooseEnds, {});
  assert.deepEqual(looseEnds.map(({ text }) => text).sort(), ["a loose end", "at a time", "later"]);
});
