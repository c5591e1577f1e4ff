// The client: one verb for each thing that a program does with a hive. Every call goes through the
// one loop that repeats.

import {
  create, type DescMessage, type DescMethodUnary, type MessageInitShape, type MessageShape,
} from "@bufbuild/protobuf";
import {
  durationFromMs, durationMs, timestampFromDate, type Duration,
} from "@bufbuild/protobuf/wkt";
import { socketPath } from "./address.js";
import { Asked } from "./asked.js";
import { Channel } from "./channel.js";
import type { Connection } from "./connection.js";
import { invalid } from "./error.js";
import { Follow, type FollowOptions } from "./follow.js";
import {
  CapabilitiesSchema, LooseEndService, MessageService, QuestionSchema, QuestionService,
  ReminderSchema, ReminderService, WakeService, type GetServerInfoResponse,
  type PublishedLooseEndSchema, type Question, type RecipientSchema, type Reminder,
  type SendMessageResponse, type WakeResponse,
} from "./gen/v1.js";
import { Mail, type MailOptions } from "./mail.js";
import { prepare } from "./request.js";
import { retry } from "./retry.js";
import type { CallOptions, Scope } from "./scope.js";
import { KIT, VERSION } from "./version.js";

/** The operator as a recipient. */
export const OPERATOR: unique symbol = Symbol("operator");
/** The caller's parent as a recipient. */
export const PARENT: unique symbol = Symbol("parent");
/** Every active agent but the caller, as a recipient. */
export const EVERYONE: unique symbol = Symbol("everyone");

/** A recipient: the name of an agent, or a constant. */
export type To = string | typeof OPERATOR | typeof PARENT | typeof EVERYONE;

/** The default budget of a call, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** The deadline of one attempt, besides its `wait`: an answer can be lost. In milliseconds. */
const ATTEMPT_MS = 10_000;

export interface ConnectOptions {
  /** The name of the program, for the log of the broker. Default: `hive-client`. */
  program?: string | undefined;
  /** The version of the program. Default: that of the kit. */
  version?: string | undefined;
  /** The budget of a call with all its repeats, in milliseconds. Default: 30,000. */
  timeoutMs?: number | undefined;
  /** Default: the environment variable `HIVE_PROCESS_TOKEN`. Empty: none. */
  processToken?: string | undefined;
  /** The trace context of the caller. Default: `TRACEPARENT`. Empty: none. */
  traceparent?: string | undefined;
}

/** Options of a call that changes something. */
export interface RequestOptions extends CallOptions {
  /** The id under which the broker knows a repeat. Default: a new one. */
  requestId?: string | undefined;
}

export interface AskOptions extends RequestOptions {
  /** Offered answers. */
  options?: string[];
  /** Whether more than one of them may be chosen. */
  multi?: boolean;
  /** The time until the question expires, in milliseconds. Default: never. */
  ttlMs?: number | undefined;
}

export interface AnswerOptions extends RequestOptions {
  text?: string;
  choices?: string[];
}

/**
 * Returns a client of the broker at a socket: a path, or `unix:PATH`. Default: the environment
 * variable `HIVE_SOCKET`, then `/run/hive/hive.sock`. It connects with the first call, which waits
 * for the broker within its budget.
 *
 * @throws HiveError INVALID_ARGUMENT if the address cannot be a unix socket
 */
export function connect(path?: string, options: ConnectOptions = {}): Hive {
  return new Hive(path, options);
}

export class Hive implements AsyncDisposable {
  readonly #channel: Channel;
  readonly #timeoutMs: number;
  #closing: Promise<void> | undefined;

  /** @internal */
  constructor(path: string | undefined, options: ConnectOptions) {
    const { program = KIT, version = VERSION, timeoutMs = TIMEOUT_MS } = options;
    const { processToken = process.env["HIVE_PROCESS_TOKEN"] } = options;
    const { traceparent = process.env["TRACEPARENT"] } = options;
    const headers = {
      ...(processToken && { "hive-process-token": processToken }),
      ...(traceparent && { traceparent }),
    };
    this.#timeoutMs = timeoutMs;
    this.#channel = new Channel(socketPath(path), { program, version, headers });
  }

  /**
   * Calls a method of the contract, such as `MessageService.method.getMessage`, and repeats the
   * identical request while the broker cannot take it. An empty `requestId` is set before that.
   *
   * @throws HiveError the refusal, or DEADLINE_EXCEEDED at the end of the budget
   */
  async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const message = prepare(method.input, request);
    const { wait } = message as { wait?: Duration };
    const attemptMs = ATTEMPT_MS + (wait ? durationMs(wait) : 0);
    return this.#repeat(options, (connection, scope) =>
      connection.unary(method, message, scope, Math.min(scope.left(), attemptMs)),
    );
  }

  /** Returns what the broker has stated in the handshake of the present connection. */
  info(options: CallOptions = {}): Promise<GetServerInfoResponse> {
    return this.#repeat(options, (connection) => connection.handshake());
  }

  /** Returns whether the broker has a capability, such as `search`; false for an unknown name. */
  async supports(capability: string, options: CallOptions = {}): Promise<boolean> {
    const { capabilities } = await this.info(options);
    const field = CapabilitiesSchema.fields.find(({ name }) => name === capability);
    return field !== undefined && capabilities?.[field.localName as "search"] === true;
  }

  /** Sends a message. Returns the receipt: the message is on disk. */
  async send(
    to: To,
    body: string,
    { inReplyTo, requestId, ...options }: RequestOptions & { inReplyTo?: bigint } = {},
  ): Promise<SendMessageResponse> {
    const request = { requestId, to: recipient(to), body, inReplyTo };
    return this.call(MessageService.method.sendMessage, request, options);
  }

  /** Asks a question. Returns it with the way to its outcome. */
  async ask(to: To, text: string, asking: AskOptions = {}): Promise<Asked> {
    const { options: offered, multi, ttlMs, requestId, ...options } = asking;
    if (typeof offered === "string") throw invalid("options", offered, "Pass a list of texts.");
    const ttl = ttlMs === undefined ? undefined : durationFromMs(ttlMs);
    const request = { requestId, to: recipient(to), text, options: offered, multi, ttl };
    const { question } = await this.call(QuestionService.method.askQuestion, request, options);
    return new Asked(this.#channel, question ?? create(QuestionSchema));
  }

  /** Answers a question with choices, text or both. Returns the question. */
  async answer(questionId: bigint, answering: AnswerOptions): Promise<Question> {
    const { text, choices, requestId, ...options } = answering;
    const request = { requestId, questionId, text, choices };
    const response = await this.call(QuestionService.method.answerQuestion, request, options);
    return response.question ?? create(QuestionSchema);
  }

  /** Sets a reminder, `due` in some milliseconds or at a time. Returns the reminder. */
  async remind(
    body: string,
    due: number | Date,
    { requestId, ...options }: RequestOptions = {},
  ): Promise<Reminder> {
    const at =
      typeof due === "number"
        ? { case: "delay" as const, value: durationFromMs(due) }
        : { case: "dueTime" as const, value: timestampFromDate(due) };
    const request = { requestId, body, due: at };
    const { reminder } = await this.call(ReminderService.method.createReminder, request, options);
    return reminder ?? create(ReminderSchema);
  }

  /**
   * Sends the socket's own agent a message of a co-process. A newer one with the same coalescing
   * key supersedes an undelivered one. Returns the receipt.
   */
  wake(
    label: string,
    body: string,
    { coalescingKey, requestId, ...options }: RequestOptions & { coalescingKey?: string } = {},
  ): Promise<WakeResponse> {
    return this.call(WakeService.method.wake, { requestId, label, body, coalescingKey }, options);
  }

  /** Publishes the whole set of loose ends of a co-process; an empty set clears it. */
  async publish(
    label: string,
    entries: MessageInitShape<typeof PublishedLooseEndSchema>[],
    { requestId, ...options }: RequestOptions = {},
  ): Promise<void> {
    const request = { requestId, label, looseEnds: entries };
    await this.call(LooseEndService.method.replaceLooseEnds, request, options);
  }

  /** Follows the event log. The stream is opened now, and read by `for await`. */
  follow(options: FollowOptions = {}): Follow {
    return new Follow(this.#channel, options);
  }

  /** Receives mail. The stream is opened now, and read by `for await` or by `Mail.each`. */
  mail(options: MailOptions = {}): Mail {
    return new Mail(this.#channel, options);
  }

  /** Closes open streams, then ends every call and the connection. Closing twice is fine. */
  close(): Promise<void> {
    this.#closing ??= this.#channel.close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Makes attempts, each on a connection after its handshake, within the budget of a call. */
  #repeat<T>(
    { signal, timeoutMs = this.#timeoutMs }: CallOptions,
    attempt: (connection: Connection, scope: Scope) => Promise<T>,
  ): Promise<T> {
    return this.#channel.scoped({ signal, timeoutMs }, (scope) =>
      retry(scope, async () => attempt(await this.#channel.connection(scope), scope)),
    );
  }
}

function recipient(to: To): MessageInitShape<typeof RecipientSchema> {
  if (typeof to === "string") return { to: { case: "agent", value: to } };
  if (to === OPERATOR) return { to: { case: "operator", value: {} } };
  if (to === PARENT) return { to: { case: "parent", value: {} } };
  if (to === EVERYONE) return { to: { case: "everyone", value: {} } };
  throw invalid("to", to, "Pass the name of an agent, OPERATOR, PARENT or EVERYONE.");
}
