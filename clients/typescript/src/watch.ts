// Watches: streams of the broker that are opened again after each break.

import type {
  DescMessage, DescMethodStreaming, MessageInitShape, MessageShape,
} from "@bufbuild/protobuf";
import type { Channel } from "./channel.js";
import { reopen } from "./retry.js";
import type { Scope } from "./scope.js";

/** Reads a watch until the scope ends. Each opening makes a request of its own. */
export function watch<I extends DescMessage, O extends DescMessage>(
  channel: Channel,
  scope: Scope,
  method: DescMethodStreaming<I, O>,
  request: () => MessageInitShape<I>,
): AsyncGenerator<MessageShape<O>, never> {
  return reopen(scope, async function* () {
    const connection = await channel.connection(scope);
    yield* connection.stream(method, only(request()), scope.signal);
  });
}

async function* only<T>(item: T): AsyncGenerator<T> {
  yield item;
}
