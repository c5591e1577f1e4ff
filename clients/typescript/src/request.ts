// Requests as they are sent: valid, a copy of their own, and with a request id that stays the same.

import { randomBytes } from "node:crypto";
import {
  clone, create, type DescMessage, type MessageInitShape, type MessageShape,
} from "@bufbuild/protobuf";
import { isFieldError } from "@bufbuild/protobuf/reflect";
import { HiveError } from "./error.js";

/** The random part of the request ids of this process. */
const series = randomBytes(6).toString("hex");
let count = 0;

/**
 * Returns a copy of a request, with a request id if it has a field for one that is empty.
 *
 * @throws HiveError INVALID_ARGUMENT if a value does not fit its field
 */
export function prepare<I extends DescMessage>(
  schema: I,
  request: MessageInitShape<I>,
): MessageShape<I> {
  let message: MessageShape<I>;
  try {
    message = clone(schema, create(schema, request));
  } catch (cause) {
    const field = isFieldError(cause) && cause.field();
    const what = field ? field.name : `A value of ${schema.name}`;
    const text = `${what} is not valid: ${(cause as Error).message}.`;
    throw new HiveError("INVALID_ARGUMENT", text, { cause });
  }
  const fields = message as { requestId?: string };
  if (fields.requestId === "") fields.requestId = `${series}-${++count}`;
  return message;
}
