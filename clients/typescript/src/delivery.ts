// A delivery that a stream has leased. It is settled at most once.

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { HiveError } from "./error.js";
import {
  DeliverySchema, MessageSchema, type Delivery as DeliveryRow, type DeliveryState,
  type LeasedDelivery, type Message, type RedeliveryCause, type SettlementSchema,
} from "./gen/v1.js";

/** The longest error of a nack, in bytes. The broker would end the stream at a longer one. */
const ERROR_BYTES_MAX = 4096;

export type Action = NonNullable<MessageInitShape<typeof SettlementSchema>["action"]>;

type Settle = (delivery: Delivery, action: Action) => Promise<DeliveryState>;

export class Delivery {
  /** The token of the lease. */
  readonly token: string;
  /** The delivery as the broker sent it. */
  readonly delivery: DeliveryRow;
  /** The message. */
  readonly message: Message;
  readonly #lost = new AbortController();
  readonly #settle: Settle;
  #settled = false;

  /** @internal */
  constructor(lease: LeasedDelivery, settle: Settle) {
    this.token = lease.leaseToken;
    this.delivery = lease.delivery ?? create(DeliverySchema);
    this.message = this.delivery.message ?? create(MessageSchema);
    this.#settle = settle;
  }

  /** The number of this try, from 1. */
  get attempt(): number {
    return this.delivery.attempt;
  }

  /** The cause of the last requeue; undefined if there was none. */
  get redeliveryCause(): RedeliveryCause | undefined {
    return this.delivery.redeliveryCause;
  }

  /**
   * Fires when the lease is lost, or when the mail is closed: stop the work. Its reason is a
   * HiveError.
   */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Whether `ack`, `nack` or `release` was called. */
  get settled(): boolean {
    return this.#settled;
  }

  /**
   * Settles the delivery as done. Returns the new state after the commit: ACKED.
   *
   * @throws HiveError LEASE_LOST if the lease is no longer held
   */
  ack(): Promise<DeliveryState> {
    return this.#end({ case: "ack", value: {} });
  }

  /**
   * Settles the delivery as failed, with a text for later readers, cut at 4 KiB.
   * It is requeued and an attempt is used; with `permanent` it becomes a dead letter at once.
   * Returns the new state after the commit: READY or DEAD.
   *
   * @throws HiveError LEASE_LOST if the lease is no longer held
   */
  nack(error: string, { permanent = false } = {}): Promise<DeliveryState> {
    const bytes = Buffer.from(String(error)).subarray(0, ERROR_BYTES_MAX);
    // A stream of text leaves out a character that is cut.
    const text = new TextDecoder().decode(bytes, { stream: true });
    return this.#end({ case: "nack", value: { error: text, permanent } });
  }

  /**
   * Settles the delivery as not begun: it is requeued at once, without an attempt. Returns the new
   * state after the commit: READY.
   *
   * @throws HiveError LEASE_LOST if the lease is no longer held
   */
  release(): Promise<DeliveryState> {
    return this.#end({ case: "release", value: {} });
  }

  /** @internal */
  lose(reason: HiveError): void {
    this.#lost.abort(reason);
  }

  async #end(action: Action): Promise<DeliveryState> {
    if (this.#settled) {
      const text = `The delivery of message ${this.message.id} is settled already.`;
      throw new HiveError("FAILED_PRECONDITION", `${text} Settle each delivery once.`);
    }
    if (this.signal.aborted) throw this.signal.reason;
    this.#settled = true;
    return this.#settle(this, action);
  }
}

/** Returns the error of a delivery whose lease is lost. */
export function lost(why: string, cause?: HiveError): HiveError {
  const text = `The lease of the delivery is lost. ${why} Stop the work on it.`;
  return new HiveError("FAILED_PRECONDITION", text, { reason: "LEASE_LOST", cause });
}
