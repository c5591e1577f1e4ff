// The life of one call or stream: it ends by its caller's signal, by its budget, or by close.
// A scope that has ended early has a reason.

import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { HiveError } from "./error.js";

/** The longest time that a timer of Node takes, in milliseconds. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** What every call takes. */
export interface CallOptions {
  /** Ends the call at once, with the code CANCELLED. */
  signal?: AbortSignal | undefined;
  /** The budget of the call with all its repeats, in milliseconds. */
  timeoutMs?: number | undefined;
}

export class Scope {
  readonly #controller = new AbortController();
  readonly #end: number;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #caller: AbortSignal | undefined;
  #reason: HiveError | undefined;
  readonly #cancel = () => {
    const cause = this.#caller?.reason;
    this.abort(new HiveError("CANCELLED", "The caller has cancelled the call.", { cause }));
  };

  /** Begins a scope that lasts `timeoutMs` milliseconds at most; Infinity is allowed. */
  constructor({ signal, timeoutMs = Infinity }: CallOptions) {
    if (!(timeoutMs > 0)) {
      const advice = "Pass a number of milliseconds above 0.";
      throw new HiveError("INVALID_ARGUMENT", `timeoutMs is ${timeoutMs}. ${advice}`);
    }
    this.#end = performance.now() + timeoutMs;
    if (timeoutMs <= TIMER_MS_MAX) {
      const advice = "Raise timeoutMs, or see whether hived runs.";
      const text = `The call was not done within ${timeoutMs} ms. ${advice}`;
      const expire = () => this.abort(new HiveError("DEADLINE_EXCEEDED", text));
      this.#timer = setTimeout(expire, timeoutMs);
    }
    this.#caller = signal;
    if (!signal) return;
    // Many calls may share a signal; by default Node warns about more than ten.
    setMaxListeners(0, signal);
    if (signal.aborted) this.#cancel();
    else signal.addEventListener("abort", this.#cancel, { once: true });
  }

  /** Fires when the scope ends early. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Why the scope has ended early; undefined if it has not. */
  get reason(): HiveError | undefined {
    return this.#reason;
  }

  /** Returns the time that is left, in milliseconds. */
  left(): number {
    return this.#end - performance.now();
  }

  /** Ends the scope early. */
  abort(reason: HiveError): void {
    this.#reason ??= reason;
    // The transport takes only an abort without a reason as the cancellation of a call.
    this.#controller.abort();
    this.end();
  }

  /** Frees the timer and the listener of the scope. Call it when the work is done. */
  end(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#cancel);
  }

  /** Throws the reason if the scope has ended early. */
  check(): void {
    if (this.#reason) throw this.#reason;
  }

  /** Waits for a promise, which goes on when the scope ends early. */
  race<T>(promise: Promise<T>): Promise<T> {
    const { signal } = this;
    return new Promise((resolve, reject) => {
      const abort = () => reject(this.#reason);
      promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort);
    });
  }

  /** Waits for some milliseconds. */
  async pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.signal }).catch(() => {
      throw this.#reason;
    });
  }
}
