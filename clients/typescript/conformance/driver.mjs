// The driver of the conformance tests: one JSON request per line on stdin, one answer per line on
// stdout, in any order. Needs the built package.

import { once } from "node:events";
import { createInterface } from "node:readline";
import { enumToJson, fromJson, toJson } from "@bufbuild/protobuf";
import { connect, EVERYONE, HiveError, OPERATOR, PARENT } from "hive-client";
import * as v1 from "hive-client/v1";
import { VERSION as version } from "../dist/version.js";

const NAMES = { "@operator": OPERATOR, "@parent": PARENT, "@everyone": EVERYONE };
const recipient = (to) => NAMES[to] ?? to;
const ms = (seconds) => (seconds === undefined ? undefined : seconds * 1000);
const big = (text) => (text === undefined ? undefined : BigInt(text));

const objects = new Map(); // what `as` names: hives, asked questions, streams, runs of `each`
const running = new Map(); // the AbortControllers of the verbs under way, by their request ids

const close = async (object) => {
  await (object.hive ?? object.stream ?? object.run.stream).close();
  await object.run?.ended;
};

const fired = async (signal) => signal.aborted || once(signal, "abort");

/** Waits for a promise, which goes on when the wait ends early. */
function within(promise, timeout, signal) {
  return new Promise((resolve, reject) => {
    const fail = (code) => reject(new HiveError(code, "The wait has ended."));
    const timer = timeout && setTimeout(fail, ms(timeout), "DEADLINE_EXCEEDED");
    if (signal.aborted) fail("CANCELLED");
    signal.addEventListener("abort", () => fail("CANCELLED"));
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Returns the next item of a stream; the one before is not lost if its wait ended early. */
async function next(object, timeout, signal) {
  object.pending ??= object.stream.next();
  const { done, value } = await within(object.pending, timeout, signal);
  object.pending = undefined;
  if (done) return { end: true };
  if (value.kind) {
    const position = { logId: value.position.logId, sequence: String(value.position.sequence) };
    const fact = value.event && toJson(v1.EventSchema, value.event);
    return { [value.kind]: fact ?? true, position };
  }
  object.deliveries.set(value.token, value);
  const { token, attempt } = value;
  const delivery = toJson(v1.DeliverySchema, value.delivery);
  return { token, message: delivery.message, attempt, delivery };
}

function each(stream, mode) {
  const run = { stream, counts: { begun: 0, done: 0, cancelled: 0 } };
  const handler = async ({ signal }) => {
    run.counts.begun++;
    if (mode === "hang") {
      await fired(signal);
      run.counts.cancelled++;
      return;
    }
    run.counts.done++;
    if (mode.startsWith("fail")) throw new Error("handler failed".repeat(mode === "fail long" ? 1000 : 1));
  };
  run.ended = stream.each(handler).catch(() => {});
  return run;
}

const json = async (name, message) => toJson(v1[`${name}Schema`], await message);
const state = async (settled) => ({ state: enumToJson(v1.DeliveryStateSchema, await settled) });
const found = ({ of, token }) => objects.get(of).deliveries.get(token);

const verbs = {
  connect: ({ as, path, ...options }) => (objects.set(as, { hive: connect(path, options) }), {}),
  close: async ({ on, of }) => (await close(objects.get(on ?? of)), {}),
  supports: async ({ hive, capability, ...options }) =>
    ({ supported: await hive.supports(capability, options) }),
  info: async ({ hive, ...options }) => json("GetServerInfoResponse", hive.info(options)),
  call({ hive, method: path, request = {}, ...options }) {
    const [service, name] = path.split("/");
    const method = v1[service].methods.find((method) => method.name === name);
    const response = hive.call(method, fromJson(method.input, request), options);
    return json(method.output.name, response);
  },
  send({ hive, to, body, inReplyTo, ...options }) {
    const sent = hive.send(recipient(to), body, { ...options, inReplyTo: big(inReplyTo) });
    return json("SendMessageResponse", sent);
  },
  async ask({ hive, as, to, text, ttl, ...options }) {
    const asked = await hive.ask(recipient(to), text, { ...options, ttlMs: ms(ttl) });
    objects.set(as, { asked });
    return json("Question", asked.question);
  },
  outcome: ({ of, ...options }) => json("Question", objects.get(of).asked.outcome(options)),
  answer: ({ hive, questionId, ...options }) =>
    json("Question", hive.answer(big(questionId), options)),
  remind: ({ hive, body, delay, ...options }) =>
    json("Reminder", hive.remind(body, ms(delay), options)),
  wake: ({ hive, label, body, ...options }) =>
    json("WakeResponse", hive.wake(label, body, options)),
  publish: async ({ hive, label, entries, ...options }) =>
    (await hive.publish(label, entries, options), {}),
  async follow({ hive, as, after, agent, signal }) {
    const position = after && { logId: after.logId, sequence: BigInt(after.sequence) };
    const stream = hive.follow({ after: position, agent });
    objects.set(as, { stream });
    await within(stream.opened.catch(() => {}), undefined, signal);
    return {};
  },
  mail({ hive, as, window, windowBytes, orphanGrace, streamId }) {
    const stream = hive.mail({ window, windowBytes, orphanGraceMs: ms(orphanGrace), streamId });
    objects.set(as, { stream, deliveries: new Map() });
    return {};
  },
  next: ({ of, timeout, signal }) => next(objects.get(of), timeout, signal),
  ack: (args) => state(found(args).ack()),
  nack: (args) => state(found(args).nack(args.error, { permanent: args.permanent })),
  release: (args) => state(found(args).release()),
  lost: async (args) =>
    (await within(fired(found(args).signal), args.timeout, args.signal), {}),
  each: ({ of, as, mode }) => (objects.set(as, { run: each(objects.get(of).stream, mode) }), {}),
  handled: ({ of }) => objects.get(of).run.counts,
  cancel: ({ request }) => (running.get(request)?.abort(), {}),
};

async function answer({ id, verb, args = {} }) {
  const controller = new AbortController();
  running.set(id, controller);
  const { on, ...given } = args;
  const options = { signal: controller.signal, timeoutMs: ms(args.timeout) };
  try {
    const hive = objects.get(on)?.hive;
    return { id, ok: await verbs[verb]({ ...given, ...options, on, hive }) };
  } catch (error) {
    const { code = "INTERNAL", reason = "", message, metadata = {}, fields = [] } = error;
    const retryAfter = error.retryAfterMs && error.retryAfterMs / 1000;
    return { id, error: { code, reason, message, metadata, fields, retryAfter } };
  } finally {
    running.delete(id);
  }
}

const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
print({ kit: "typescript", version });
for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim()) void answer(JSON.parse(line)).then(print);
}
for (const controller of running.values()) controller.abort();
await Promise.all([...objects.values()].filter(({ hive }) => hive).map(close));
