// The one place that repeats: the rule, the pauses, and the loop for calls and for streams.

import { HiveError } from "./error.js";
import { isSoon } from "./reason.js";
import type { Scope } from "./scope.js";

const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 5_000;

/**
 * Returns whether the identical request may succeed in a moment. A connection that broke has the
 * code UNAVAILABLE here, whatever the transport reported.
 */
export function repeats(error: HiveError): boolean {
  if (error.reason) return isSoon(error.reason);
  return error.code === "UNAVAILABLE" || error.code === "DEADLINE_EXCEEDED";
}

/** The pauses between attempts. */
export class Backoff {
  #pause = PAUSE_MS_MIN;

  /** Returns the next pause in milliseconds: the delay of the broker, or else one that doubles. */
  next({ retryAfterMs }: HiveError): number {
    if (retryAfterMs !== undefined) return retryAfterMs * (1 + Math.random() / 4);
    const pause = this.#pause;
    this.#pause = Math.min(2 * pause, PAUSE_MS_MAX);
    return pause * (0.5 + Math.random() / 2);
  }

  /** Begins again with the shortest pause, after a success. */
  reset(): void {
    this.#pause = PAUSE_MS_MIN;
  }
}

/**
 * Repeats an attempt until it succeeds, fails for good, or the scope ends. The end of the budget
 * is the last refusal of the broker if there was one, because it says more than the time.
 */
export async function retry<T>(scope: Scope, attempt: () => Promise<T>): Promise<T> {
  const backoff = new Backoff();
  let refusal: HiveError | undefined;
  const last = (error: HiveError) =>
    error.code === "DEADLINE_EXCEEDED" && !error.reason ? (refusal ?? error) : error;
  for (;;) {
    try {
      scope.check();
      return await attempt();
    } catch (thrown) {
      const error = HiveError.from(thrown);
      const { reason } = scope;
      if (reason) throw last(error.code === reason.code ? error : reason);
      if (!repeats(error)) throw error;
      if (error.reason) refusal = error;
      const pause = backoff.next(error);
      if (pause >= scope.left()) throw last(error);
      await scope.pause(pause).catch((ended: HiveError) => {
        throw last(ended);
      });
    }
  }
}

/** Runs a stream that does not end by itself, and opens it again after each break. */
export async function* reopen<T>(
  scope: Scope,
  open: () => AsyncIterable<T>,
  again = repeats,
): AsyncGenerator<T, never> {
  const backoff = new Backoff();
  for (;;) {
    let error = new HiveError("UNAVAILABLE", "The broker has ended the stream.");
    try {
      for await (const step of open()) {
        backoff.reset();
        yield step;
      }
    } catch (thrown) {
      error = HiveError.from(thrown);
    }
    scope.check();
    if (!again(error)) throw error;
    await scope.pause(backoff.next(error));
  }
}
