// A follower of the event log. It goes on after its last position, so it has no event twice and
// misses none that the broker still keeps.

import type { Channel } from "./channel.js";
import { HiveError, invalid } from "./error.js";
import { EventService, type Event, type WatchEventsResponse } from "./gen/v1.js";
import type { Scope } from "./scope.js";

/** A place in the event log. Sequence numbers mean something only within one log. */
export interface Position {
  logId: string;
  sequence: bigint;
}

/** An event; or the events after a position are gone; or a backup has begun another log. */
export type Entry =
  | { kind: "fact"; event: Event; position: Position }
  | { kind: "gap"; position: Position }
  | { kind: "logChanged"; position: Position };

export interface FollowOptions {
  /** The position of the last entry that is known; without it, the next event is the first. */
  after?: Position | undefined;
  /** Only events of this agent. */
  agent?: string;
  /** Ends the stream at once, with the code CANCELLED. */
  signal?: AbortSignal;
}

export class Follow implements AsyncIterableIterator<Entry, undefined>, AsyncDisposable {
  /** Resolves when the broker has opened the watch: each later event is in the stream. */
  readonly opened: Promise<void>;
  readonly #channel: Channel;
  readonly #scope: Scope;
  readonly #reading: AsyncGenerator<Entry, undefined>;
  #first: Promise<IteratorResult<Entry, undefined>> | undefined;
  #position: Position | undefined;
  #closed = false;
  #onOpened = () => {};

  /** @internal */
  constructor(channel: Channel, { after, agent = "", signal }: FollowOptions) {
    if (after !== undefined && typeof after?.sequence !== "bigint") {
      throw invalid("after", after, "Pass the position of an entry.");
    }
    this.#channel = channel;
    this.#scope = channel.begin({ signal }, () => this.close());
    this.#position = after;
    const opened = new Promise<void>((resolve) => (this.#onOpened = resolve));
    this.#reading = this.#read(agent);
    // The watch begins now, not with the first read.
    this.#first = this.#reading.next();
    this.opened = Promise.race([opened, this.#first.then(() => {})]);
    this.opened.catch(() => {});
  }

  /**
   * Returns the next entry; `done` after `close`.
   *
   * @throws HiveError the error that ended the stream
   */
  next(): Promise<IteratorResult<Entry, undefined>> {
    const next = this.#first ?? this.#reading.next();
    this.#first = undefined;
    return next;
  }

  /** Closes the stream; a loop over it does that when it is left. */
  async return(): Promise<IteratorResult<Entry, undefined>> {
    await this.close();
    return { done: true, value: undefined };
  }

  /** Ends the stream; what was not read is dropped. Closing twice is fine. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#first = undefined;
    this.#scope.abort(new HiveError("CANCELLED", "The stream of events is closed."));
    await this.#reading.return(undefined);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async *#read(agent: string): AsyncGenerator<Entry, undefined> {
    const request = () => {
      const after = this.#position;
      return { agent, ...(after && { logId: after.logId, afterSequence: after.sequence }) };
    };
    const { watchEvents } = EventService.method;
    try {
      for await (const { step } of this.#channel.watch(this.#scope, watchEvents, request)) {
        this.#onOpened();
        yield* this.#entries(step);
      }
    } catch (error) {
      if (!this.#closed) throw error;
    } finally {
      this.#channel.end(this.#scope);
    }
    return undefined;
  }

  /** Yields what a step has for the reader, after a move to the position of each entry. */
  *#entries(step: WatchEventsResponse["step"]): Generator<Entry, undefined> {
    switch (step.case) {
      case "snapshot": {
        const { logId, logChanged, gap, firstSequence, lastSequence } = step.value;
        const newest = { logId, sequence: lastSequence };
        if (logChanged) {
          this.#position = newest;
          yield { kind: "logChanged", position: newest };
        } else if (gap) {
          this.#position = { logId, sequence: firstSequence - 1n };
          yield { kind: "gap", position: this.#position };
        }
        this.#position ??= newest;
        break;
      }
      case "batch": {
        const logId = this.#position?.logId ?? "";
        for (const event of step.value.events) {
          this.#position = { logId, sequence: event.sequence };
          yield { kind: "fact", event, position: this.#position };
        }
        this.#position = { logId, sequence: step.value.sequence };
        break;
      }
      case "progress":
        this.#position = { logId: step.value.logId, sequence: step.value.sequence };
    }
  }
}
