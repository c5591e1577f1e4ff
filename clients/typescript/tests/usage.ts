// A program in TypeScript. It is only compiled, as its users compile theirs.

import { connect, HiveError, OPERATOR, type Position } from "hive-client";
import { DeliveryState, EventKind, MessageService, type Question } from "hive-client/v1";

export async function main(saved: Position | undefined, signal: AbortSignal): Promise<bigint> {
  await using hive = connect("unix:/run/hive/hive.sock", { program: "usage", timeoutMs: 10_000 });
  const receipt = await hive.send(OPERATOR, "hello", { signal, inReplyTo: 3n });
  const asked = await hive.ask("bob", "Deploy?", { options: ["yes"], ttlMs: 60_000 });
  const question: Question = await asked.outcome({ signal });
  await hive.publish("matrix", [{ key: "a", text: "b" }]);
  await using mail = hive.mail({ window: 4, streamId: "usage" });
  for await (const delivery of mail) {
    try {
      const state: DeliveryState = await delivery.ack();
      if (state === DeliveryState.ACKED) break;
    } catch (error) {
      if (!(error instanceof HiveError) || error.reason !== "LEASE_LOST") throw error;
    }
  }
  for await (const entry of hive.follow({ after: saved })) {
    if (entry.kind === "fact" && entry.event.kind === EventKind.AGENT_CREATED) break;
  }
  const method = MessageService.method.getMessage;
  const { message } = await hive.call(method, { messageId: receipt.messageId });
  return message?.id ?? question.id;
}
