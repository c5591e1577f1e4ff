// A stream of deliveries. It holds its leases over breaks of the connection, and hands out each
// lease once. Settlements are sent in their order, one step at a time.

import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Channel } from "./channel.js";
import { Delivery, lost, type Action } from "./delivery.js";
import { HiveError, invalid } from "./error.js";
import {
  DeliveryState, InboxService, OpenDeliveriesSchema, type LeasedDelivery, type SettlementResult,
  type StreamDeliveriesRequestSchema, type StreamDeliveriesResponse,
} from "./gen/v1.js";
import { Queue } from "./queue.js";
import { prepare } from "./request.js";
import { reopen, repeats } from "./retry.js";
import type { Scope } from "./scope.js";

/** The most settlements of one step: with the longest errors it stays below 512 KiB. */
const SETTLEMENTS_MAX = 120;

/** The time that `close` takes at most, in milliseconds. */
const CLOSE_MS_MAX = 10_000;

export interface MailOptions {
  /** How many deliveries the stream holds at once: 1 to 256. Default: 8. */
  window?: number;
  /** How many bytes of bodies it holds at once; one delivery always fits. Default: 3 MiB. */
  windowBytes?: number;
  /** How long the leases outlive a break, in milliseconds, at most 1 h. Default: 30 s. */
  orphanGraceMs?: number;
  /** The name of the stream. A newer stream of the same name takes the leases over. */
  streamId?: string;
}

/** A settlement without its result. */
interface Pending {
  delivery: Delivery;
  action: Action;
  resolve(state: DeliveryState): void;
  reject(error: HiveError): void;
}

type Request = MessageInitShape<typeof StreamDeliveriesRequestSchema>;

export class Mail implements AsyncIterableIterator<Delivery, undefined>, AsyncDisposable {
  /** The name of the stream. */
  readonly streamId: string;
  readonly #channel: Channel;
  readonly #scope: Scope;
  readonly #open: Request;
  /** Resolves when the stream has ended for good. */
  readonly #ended: Promise<void>;
  /** The live leases by their tokens, until the results of their settlements. */
  readonly #held = new Map<string, Delivery>();
  /** Deliveries that are not handed out yet; lost ones are skipped. */
  readonly #ready = new Queue<Delivery>();
  /** Handlers that run, and settlements under way. */
  readonly #busy = new Set<Promise<unknown>>();
  #unsent: Pending[] = [];
  #sent: Pending[] = [];
  /** The requests of the open stream. */
  #outbox: Queue<Request> | undefined;
  /** The tokens that the open stream has listed; complete with `#opened`. */
  #listed = new Set<string>();
  #opened = false;
  /** Set by `close`: nothing is handed out any more. */
  #closed: HiveError | undefined;
  /** Set by `close`, later: our side of the stream is closed. */
  #leaving = false;
  #closing: Promise<void> | undefined;

  /** @internal */
  constructor(channel: Channel, options: MailOptions) {
    const { window = 8, windowBytes = 0, orphanGraceMs, streamId = randomUUID() } = options;
    const orphanGrace = orphanGraceMs === undefined ? undefined : durationFromMs(orphanGraceMs);
    const size = { deliveries: window, bytes: windowBytes };
    const value = prepare(OpenDeliveriesSchema, { streamId, window: size, orphanGrace });
    this.streamId = streamId;
    this.#open = { step: { case: "open", value } };
    this.#channel = channel;
    this.#scope = channel.begin({}, () => this.close());
    this.#ended = this.#run();
  }

  /**
   * Returns the next delivery; `done` after `close`.
   *
   * @throws HiveError the error that ended the mail for good
   */
  async next(): Promise<IteratorResult<Delivery, undefined>> {
    for (;;) {
      const next = await this.#ready.next();
      if (next.done || !next.value.signal.aborted) return next;
    }
  }

  /** Closes the mail; a loop over it does that when it is left. */
  async return(): Promise<IteratorResult<Delivery, undefined>> {
    await this.close();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Runs a handler for each delivery, as many at once as the window allows, until the mail is
   * closed. Its return acks the delivery, and its error nacks it with the text of the error, and
   * is a warning of the process. A handler ends when `delivery.signal` fires; then nothing is
   * settled.
   *
   * @throws HiveError the error that ended the mail for good
   */
  async each(handler: (delivery: Delivery) => unknown): Promise<void> {
    if (typeof handler !== "function") throw invalid("handler", handler, "Pass a function.");
    try {
      for (let next = await this.next(); !next.done; next = await this.next()) {
        void this.#track(this.#handle(next.value, handler));
      }
    } finally {
      await this.#idle();
    }
  }

  /**
   * Closes the mail: settlements under way get their results, and what else is held is released
   * without an attempt. Takes 10 s at most. Closing twice is fine.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const closed = new HiveError("CANCELLED", "The mail is closed.");
    this.#closed = closed;
    this.#ready.end();
    for (const delivery of this.#held.values()) {
      if (!delivery.settled) delivery.lose(closed);
    }
    const timer = setTimeout(() => this.#scope.abort(closed), CLOSE_MS_MAX);
    await this.#scope.race(this.#idle()).catch(() => {});
    this.#leaving = true;
    if (this.#outbox) this.#outbox.end();
    else if (this.#held.size === 0) this.#scope.abort(closed);
    await this.#ended;
    clearTimeout(timer);
  }

  /** Waits for the handlers, and for the results of settlements. */
  async #idle(): Promise<void> {
    while (this.#busy.size > 0) await Promise.allSettled(this.#busy);
  }

  #track<T>(work: Promise<T>): Promise<T> {
    const done = () => this.#busy.delete(work);
    this.#busy.add(work);
    work.then(done, done);
    return work;
  }

  async #handle(delivery: Delivery, handler: (delivery: Delivery) => unknown): Promise<void> {
    let failure: string | undefined;
    try {
      await handler(delivery);
    } catch (error) {
      failure = error instanceof Error ? error.message || error.name : String(error);
      if (!delivery.signal.aborted) warn(delivery, error);
    }
    if (delivery.settled || delivery.signal.aborted) return;
    const settled = failure === undefined ? delivery.ack() : delivery.nack(failure);
    // A refusal says that the lease is lost, and the end of the mail is thrown by `next`.
    await settled.catch(() => {});
  }

  /** Keeps a stream open until the mail is closed, or broken for good. */
  async #run(): Promise<void> {
    const again = (error: HiveError) => {
      if (this.#leaving && this.#held.size === 0) return false;
      return !error.reason || error.reason === "STREAM_SILENT" || repeats(error);
    };
    try {
      for await (const { step } of reopen(this.#scope, () => this.#stream(), again)) {
        this.#receive(step);
      }
    } catch (error) {
      this.#finish(HiveError.from(error));
    }
  }

  /** Opens one stream, and reads it to its end. */
  async *#stream(): AsyncGenerator<StreamDeliveriesResponse, undefined> {
    const connection = await this.#channel.connection(this.#scope);
    const outbox = new Queue<Request>();
    outbox.push(this.#open);
    if (this.#leaving) outbox.end();
    this.#outbox = outbox;
    this.#listed.clear();
    try {
      const { streamDeliveries } = InboxService.method;
      yield* connection.stream(streamDeliveries, outbox, this.#scope);
      // The broker has released what we held.
      if (this.#leaving) this.#held.clear();
    } finally {
      this.#outbox = undefined;
      this.#opened = false;
      this.#unsent.unshift(...this.#sent.splice(0));
    }
  }

  #receive(step: StreamDeliveriesResponse["step"]): void {
    switch (step.case) {
      case "opened":
        for (const lease of step.value.deliveries) {
          this.#listed.add(lease.leaseToken);
          this.#take(lease);
        }
        if (step.value.complete) this.#resume();
        break;
      case "leased":
        for (const lease of step.value.deliveries) this.#take(lease);
        break;
      case "settled":
        for (const result of step.value.results) this.#conclude(result);
        this.#flush();
        break;
      case "ping":
        this.#outbox?.push({ step: { case: "pong", value: {} } });
    }
  }

  /** Hands out a lease, unless it is held already. */
  #take(lease: LeasedDelivery): void {
    if (this.#held.has(lease.leaseToken)) return;
    const delivery = new Delivery(lease, (settled, action) => this.#settle(settled, action));
    this.#held.set(delivery.token, delivery);
    if (this.#closed) delivery.lose(this.#closed);
    else this.#ready.push(delivery);
  }

  /** Gives up what an opened stream has not listed, and sends settlements without results. */
  #resume(): void {
    for (const [token, delivery] of this.#held) {
      // A settlement may have ended its lease: its result decides.
      if (this.#listed.has(token) || delivery.settled) continue;
      this.#held.delete(token);
      delivery.lose(lost("The stream broke, and the broker has requeued the delivery."));
    }
    this.#opened = true;
    this.#flush();
  }

  #settle(delivery: Delivery, action: Action): Promise<DeliveryState> {
    const result = new Promise<DeliveryState>((resolve, reject) => {
      this.#unsent.push({ delivery, action, resolve, reject });
    });
    this.#flush();
    return this.#track(result);
  }

  /** Sends the next step of settlements when the step before has its results. */
  #flush(): void {
    if (!this.#opened || this.#sent.length > 0 || this.#unsent.length === 0) return;
    this.#sent = this.#unsent.splice(0, SETTLEMENTS_MAX);
    const settlements = this.#sent.map(({ delivery: { token }, action }) => {
      return { target: { case: "leaseToken" as const, value: token }, action };
    });
    this.#outbox?.push({ step: { case: "settle", value: { settlements } } });
  }

  /** Takes the result of the oldest settlement. */
  #conclude({ result }: SettlementResult): void {
    const pending = this.#sent.shift();
    if (!pending) return;
    const { delivery } = pending;
    this.#held.delete(delivery.token);
    if (result.case === "refusal") {
      const refusal = HiveError.fromRefusal(result.value);
      delivery.lose(refusal);
      pending.reject(refusal);
    } else {
      pending.resolve(result.case === "state" ? result.value : DeliveryState.UNSPECIFIED);
    }
  }

  #finish(end: HiveError): void {
    const text = "The mail was closed before the result of the settlement. See the inbox.";
    const unknown = this.#closed ? new HiveError("CANCELLED", text) : end;
    const gone = this.#closed ?? lost(`The stream has ended: ${end.message}`, end);
    for (const delivery of this.#held.values()) delivery.lose(gone);
    this.#held.clear();
    for (const { reject } of this.#unsent.splice(0)) reject(unknown);
    this.#ready.end(this.#closed ? undefined : end);
    this.#channel.end(this.#scope);
  }
}

/** Shows the error of a handler, which only the broker would know otherwise. */
function warn(delivery: Delivery, error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const warning = `The handler of message ${delivery.message.id} failed: ${text}`;
  process.emitWarning(warning, "HiveWarning");
}
