// Measures the kit, or the generated client alone, for `make bench WORKLOADS=kits`. Needs the
// built package.
//
//   rates.mjs kit|generated send|receive SOCKET AGENT COUNT WINDOW
//
// Sends COUNT messages to the agent, or takes and acks as many of its mail, with at most WINDOW of
// them under way. Prints the seconds that it took. A tenth of COUNT goes before, and does not
// count.

import { randomUUID } from "node:crypto";
import { connect as connectSocket } from "node:net";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { connect } from "hive-client";
import { DeliveryState, InboxService, MessageService } from "hive-client/v1";

const [way, work, socket, agent, count, window] = process.argv.slice(2);
const BODY = "x".repeat(200);
const counted = Number(count);
const before = Math.floor(counted / 10);

let done = 0;
let started = 0;
let stop;
const stopped = new Promise((resolve) => (stop = resolve));

/** Counts a message, and notes when the counted part begins and ends. */
function tick() {
  done++;
  if (done === before) started = performance.now();
  if (done === before + counted) stop((performance.now() - started) / 1000);
}

async function send(one) {
  let turns = before + counted;
  const worker = async () => {
    while (turns-- > 0) {
      await one();
      tick();
    }
  };
  await Promise.all(Array.from({ length: Number(window) }, worker));
}

async function kit() {
  const hive = connect(socket);
  if (work === "send") {
    await send(() => hive.send(agent, BODY));
  } else {
    const mail = hive.mail({ window: Number(window) });
    const each = mail.each(async (delivery) => {
      await delivery.ack();
      tick();
    });
    await stopped;
    await mail.close();
    await each;
  }
  await hive.close();
}

/** Acks what a stream hands out. */
async function take(inbox) {
  const outbox = [{ case: "open", value: { streamId: randomUUID(), window: { deliveries: Number(window) } } }];
  let wake = () => {};
  async function* requests() {
    for (;;) {
      const step = outbox.shift();
      if (step === "end") return;
      if (step) yield { step };
      else await new Promise((resolve) => (wake = resolve));
    }
  }
  const write = (step) => {
    outbox.push(step);
    wake();
  };
  for await (const { step } of inbox.streamDeliveries(requests())) {
    if (step.case === "leased") {
      const settlements = step.value.deliveries.map(({ leaseToken }) => {
        return { target: { case: "leaseToken", value: leaseToken }, action: { case: "ack", value: {} } };
      });
      write({ case: "settle", value: { settlements } });
    } else if (step.case === "settled") {
      for (const { result } of step.value.results) {
        if (result.value !== DeliveryState.ACKED) throw new Error(`not acked: ${result.case}`);
        tick();
      }
      if (done === before + counted) write("end");
    }
  }
}

async function generated() {
  const transport = createGrpcTransport({
    baseUrl: "http://localhost",
    nodeOptions: { createConnection: () => connectSocket(socket) },
  });
  if (work === "send") {
    const messages = createClient(MessageService, transport);
    const to = { to: { case: "agent", value: agent } };
    const options = { timeoutMs: 10_000 };
    await send(() => messages.sendMessage({ requestId: randomUUID(), to, body: BODY }, options));
  } else {
    await take(createClient(InboxService, transport));
  }
}

await { kit, generated }[way]();
console.log(await stopped);
process.exit();
