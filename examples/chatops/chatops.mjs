// @ts-check
// Posts the open questions to the operator in a chat, and answers them with replies like `#12 yes`
// or `#12 2`. Environment:
//
//   HIVE_SOCKET       the operator's socket, such as .hive/run/hived.sock
//   CHAT_URL          where the chat takes posts: JSON with `id` and `text`
//   CHAT_TOKEN_FILE   file with the secret of the chat's calls: `Authorization: Bearer SECRET`
//   CHATOPS_LISTEN    address and port of POST /replies (default: 127.0.0.1:8081; port 0: any)
//   CHATOPS_STATE     file with the ids of the posted questions (default: chatops.json)

import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { connect, HiveError } from "hive-client";
import { EventKind, QuestionService, QuestionState } from "hive-client/v1";
import { Chat } from "./chat.mjs";

/** @typedef {import("hive-client/v1").Question} Question */

const { CHAT_URL: url = "", CHAT_TOKEN_FILE = "", CHATOPS_STATE = "chatops.json" } = process.env;
const { CHATOPS_LISTEN: listen = "127.0.0.1:8081" } = process.env;
const token = CHAT_TOKEN_FILE && readFileSync(CHAT_TOKEN_FILE, "utf8").trim();
if (!url || !token) throw new Error("set CHAT_URL, and CHAT_TOKEN_FILE to a file with a secret");

const { QUESTION_ASKED, QUESTION_ANSWERED, QUESTION_EXPIRED, QUESTION_CANCELLED } = EventKind;
const CHANGES = [QUESTION_ASKED, QUESTION_ANSWERED, QUESTION_EXPIRED, QUESTION_CANCELLED];

const stop = new AbortController();
for (const name of ["SIGTERM", "SIGINT"]) process.once(name, () => stop.abort());
const { signal } = stop;
const hive = connect(undefined, { program: "chatops", timeoutMs: 5_000 });
// Calls of the watching part wait for the broker until SIGTERM, as the stream of events does.
const patient = { timeoutMs: Infinity, signal };

// The posted questions whose outcome the chat does not have. The broker never uses an id again.
/** @type {Set<string>} */
const posted = new Set(
  existsSync(CHATOPS_STATE) ? JSON.parse(readFileSync(CHATOPS_STATE, "utf8")) : [],
);

function save() {
  writeFileSync(`${CHATOPS_STATE}.tmp`, JSON.stringify([...posted]), { flush: true });
  renameSync(`${CHATOPS_STATE}.tmp`, CHATOPS_STATE);
}

/** Returns a question to the operator, if there is one. @param {bigint} questionId */
async function find(questionId, options = {}) {
  const { getQuestion } = QuestionService.method;
  try {
    const { question } = await hive.call(getQuestion, { questionId }, options);
    return question?.target === "operator" ? question : undefined;
  } catch (error) {
    if (error instanceof HiveError && error.reason === "QUESTION_NOT_FOUND") return undefined;
    throw error;
  }
}

/** Returns the outcome in words. @param {Question | undefined} question */
function outcome(question) {
  if (!question) return "gone";
  const { state, answer, closedBy } = question;
  if (state === QuestionState.EXPIRED) return "expired";
  if (state !== QuestionState.ANSWERED) return `withdrawn by ${closedBy || "the broker"}`;
  return `answered: ${[...(answer?.choices ?? []), answer?.text].filter(Boolean).join(", ")}`;
}

/** Brings the chat to the state of the broker: every open question, and every outcome. */
async function synchronise() {
  const { listQuestions } = QuestionService.method;
  const filter = { target: "operator", states: [QuestionState.OPEN], pageSize: 500 };
  /** @type {Map<string, Question>} */
  const open = new Map();
  for (let pageToken = "", last = false; !last; last = !pageToken) {
    const page = await hive.call(listQuestions, { ...filter, pageToken }, patient);
    for (const question of page.questions) open.set(`${question.id}`, question);
    pageToken = page.nextPageToken;
  }
  for (const id of [...posted].filter((id) => !open.has(id))) {
    const question = await find(BigInt(id), patient);
    if (question?.state === QuestionState.OPEN) continue; // it moved from one page to another
    await chat.tell(`closed-${id}`, `Question ${id} is ${outcome(question)}.`);
    posted.delete(id);
    save();
  }
  for (const [id, { asker, text, options }] of [...open].reverse()) { // the oldest first
    if (posted.has(id)) continue;
    const offered = options.map((option, index) => `\n${index + 1}. ${option}`).join("");
    // A post never begins with `#`: a chat may send the bot its own posts, which are no replies.
    await chat.tell(`asked-${id}`, `Question ${id} from ${asker}: ${text}${offered}`);
    posted.add(id);
    save();
  }
}

/** Returns the answer that a reply means. @param {string[]} options @param {string} reply */
function meaning(options, reply) {
  const words = reply.split(",").map((word) => word.trim());
  const choices = words.map((word) => {
    const same = options.find((option) => option.toLowerCase() === word.toLowerCase());
    return same ?? options[Number(word) - 1] ?? word;
  });
  // A number without an option is refused by the broker, because it is no offered answer.
  const numbers = words.every((word) => /^\d+$/.test(word));
  const chosen = numbers || choices.every((choice) => options.includes(choice));
  return options.length && chosen ? { choices } : { text: reply };
}

/** Answers a question, and posts why if that fails. @param {import("./chat.mjs").Reply} reply */
async function answer({ id, text }) {
  const [, number = "", words = ""] = /^\s*#(\d{1,19})\s+(\S.*?)\s*$/s.exec(text) ?? [];
  if (!number) return { status: 200, text: "" }; // other talk in the chat
  const problem = { status: 200, text: `There is no question ${number} to the operator.` };
  try {
    const question = await find(BigInt(number));
    if (question) {
      // The id of the chat makes a reply that comes again have no second effect.
      const requestId = id === undefined ? undefined : `chat:${id}`;
      await hive.answer(question.id, { ...meaning(question.options, words), requestId });
      return { status: 200, text: `Question ${number} is answered.` }; // the post follows its event
    }
  } catch (error) {
    if (!(error instanceof HiveError)) throw error;
    problem.text = `The reply to question ${number} is refused: ${error.message}`;
    if (["UNAVAILABLE", "DEADLINE_EXCEEDED"].includes(error.code)) {
      problem.status = 503;
      problem.text = `The broker does not answer. Send the reply to question ${number} again.`;
    }
  }
  await chat.post(randomUUID(), problem.text).catch((error) => console.error(error));
  return problem;
}

const chat = new Chat({ url, token, listen, signal }, answer);
try {
  const events = hive.follow({ signal });
  await events.opened; // no change from here on is missed
  await synchronise();
  for await (const entry of events) {
    // After a gap in the log, or a restored backup, the state is read again as well.
    if (entry.kind !== "fact" || CHANGES.includes(entry.event.kind)) await synchronise();
  }
} catch (error) {
  if (!signal.aborted) throw error;
} finally {
  await chat.close();
  await hive.close();
}
