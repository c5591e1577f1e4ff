// The one error type of the kit, and the one place that makes it from statuses and refusals.

import { inspect } from "node:util";
import { durationMs, type Duration } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema, ErrorInfoSchema, RetryInfoSchema,
} from "./gen/google/rpc/error_details_pb.js";
import type { Refusal } from "./gen/v1.js";
import { codeOf, reasonName } from "./reason.js";

/** The domain of the reasons of the broker. */
const DOMAIN = "hive";

/** A field of a request, and what is wrong with it. */
export interface FieldViolation {
  field: string;
  description: string;
}

/** What an error may have besides its code and its message. */
export interface HiveErrorFacts {
  reason?: string;
  metadata?: Record<string, string>;
  fields?: FieldViolation[];
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** A failed call, settlement or stream. Programs decide by `reason`, and by `code` without one. */
export class HiveError extends Error {
  override readonly name = "HiveError";
  /** The name of the gRPC code, such as `NOT_FOUND`. */
  readonly code: string;
  /** The reason of the broker, such as `AGENT_NOT_FOUND`; empty if the broker gave none. */
  readonly reason: string;
  /** The facts of the reason: names, ids, limits. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The invalid fields of the request. */
  readonly fields: readonly FieldViolation[];
  /** The time after which a repeat may help, in milliseconds; undefined if there is none. */
  readonly retryAfterMs: number | undefined;

  constructor(code: string, message: string, facts: HiveErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = code;
    this.reason = facts.reason ?? "";
    this.metadata = facts.metadata ?? {};
    this.fields = facts.fields ?? [];
    this.retryAfterMs = facts.retryAfterMs;
  }

  /** Returns code, reason and message in one line. */
  override toString(): string {
    return `${this.name}: ${[this.code, this.reason].filter(Boolean).join(" ")}: ${this.message}`;
  }

  /** Returns the error of a call that ended with a status, or failed before it had one. */
  static from(error: unknown): HiveError {
    if (error instanceof HiveError) return error;
    const status = ConnectError.from(error);
    const code = codeName(status.code);
    const info = status.findDetails(ErrorInfoSchema).find(({ domain }) => domain === DOMAIN);
    if (!info) return new HiveError(code, status.rawMessage, { cause: error });
    return new HiveError(code, status.rawMessage, {
      reason: info.reason,
      metadata: info.metadata,
      fields: status
        .findDetails(BadRequestSchema)
        .flatMap((bad) => bad.fieldViolations)
        .map(({ field, description }) => ({ field, description })),
      retryAfterMs: milliseconds(status.findDetails(RetryInfoSchema)[0]?.retryDelay),
    });
  }

  /** Returns the error of a part of a call that as a whole succeeded. */
  static fromRefusal(refusal: Refusal): HiveError {
    const reason = reasonName(refusal.reason);
    return new HiveError(codeOf(reason), refusal.message, {
      reason,
      metadata: refusal.metadata,
      retryAfterMs: milliseconds(refusal.retryDelay),
    });
  }
}

/** Returns the name of a code in the spelling of gRPC: `CANCELLED`, `NOT_FOUND`. */
function codeName(code: Code): string {
  if (code === Code.Canceled) return "CANCELLED";
  return (Code[code] ?? "Unknown").replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}

function milliseconds(duration: Duration | undefined): number | undefined {
  return duration && durationMs(duration);
}

/** Returns the error of an argument that cannot be right; types do not stop JavaScript. */
export function invalid(name: string, value: unknown, advice: string): HiveError {
  return new HiveError("INVALID_ARGUMENT", `${name} is ${inspect(value)}. ${advice}`);
}
