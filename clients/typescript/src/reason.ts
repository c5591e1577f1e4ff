// The table of reasons, read from the options of the generated enum. It is the only place that
// knows which reasons are worth a repeat.

import { getOption, hasOption } from "@bufbuild/protobuf";
import { about, ReasonSchema, Retry, type ReasonOptions } from "./gen/v1.js";

const PREFIX = "REASON_";

const table = new Map<string, ReasonOptions>();
for (const value of ReasonSchema.values) {
  if (hasOption(value, about)) {
    table.set(value.name.slice(PREFIX.length), getOption(value, about));
  }
}

/** Returns the name of a reason as in `ErrorInfo.reason`; for an unknown value its number. */
export function reasonName(value: number): string {
  const known = ReasonSchema.values.find(({ number }) => number === value);
  return known?.name.slice(PREFIX.length) ?? String(value);
}

/** Returns the gRPC code of the refusals with a reason; UNKNOWN for an unknown reason. */
export function codeOf(reason: string): string {
  return table.get(reason)?.code ?? "UNKNOWN";
}

/** Returns whether the identical request may succeed in a moment; false for an unknown reason. */
export function isSoon(reason: string): boolean {
  return table.get(reason)?.retry === Retry.SOON;
}
