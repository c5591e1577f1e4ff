// Addresses, the handshake, and the ends of a client.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import test from "node:test";
import { socketPath } from "../dist/address.js";
import { connect } from "../dist/index.js";
import { InboxService } from "../dist/gen/v1.js";
import { KIT, VERSION } from "../dist/version.js";
import { Broker, failure } from "./broker.mjs";
import { Fake, refusal } from "./fake.mjs";

test("an address is a path or a URI of a unix socket", () => {
  process.env.HIVE_SOCKET = "unix:/env/hive.sock";
  assert.equal(socketPath(), "/env/hive.sock");
  delete process.env.HIVE_SOCKET;
  assert.equal(socketPath(), "/run/hive/hive.sock");
  assert.equal(socketPath("unix:///a/b.sock"), "/a/b.sock");
  assert.equal(socketPath("unix:b.sock"), "b.sock");
  assert.equal(socketPath("x/y:z"), "x/y:z");
  assert.equal(socketPath("/" + "x".repeat(106)).length, 107);
  for (const address of ["", "unix:", "unix://host/x", "http://x", "/" + "é".repeat(54), 5]) {
    assert.throws(() => connect(address), { code: "INVALID_ARGUMENT", reason: "" });
  }
});

test("an argument of a wrong type is refused by its name, and nothing is sent", async (t) => {
  let sent = 0;
  const { hive } = await Fake.start(t, { sendMessage: () => ({ messageId: BigInt(++sent) }) });
  for (const to of [undefined, null, 5, { name: "bob" }, Symbol("everyone")]) {
    assert.match((await failure(hive.send(to, "x"))).message, /^to is .*EVERYONE/s);
  }
  assert.match((await failure(hive.send("bob", 5))).message, /^body is not valid: /);
  assert.match((await failure(hive.ask("bob", "x", { options: "abc" }))).message, /^options is/);
  assert.throws(() => hive.follow({ after: "x" }), { message: /^after is 'x'/ });
  await assert.rejects(hive.mail().each("handler"), { message: /^handler is 'handler'/ });
  assert.equal(sent, 0);
});

test("the version of the kit is that of its package", () => {
  const { name, version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url)));
  assert.deepEqual([KIT, VERSION], [name, version]);
});

test("a call waits for the broker within its budget", async (t) => {
  const broker = await Broker.start(t);
  await broker.stop();
  const hive = broker.connect("ada");
  const error = await failure(hive.info({ timeoutMs: 200 }));
  assert.equal(error.code, "DEADLINE_EXCEEDED");
  assert.match(error.message, /ECONNREFUSED.*HIVE_SOCKET/);
  const call = hive.info();
  await broker.start();
  assert.ok((await call).version);
});

test("concurrent calls share one handshake, with the metadata of every call", async (t) => {
  const fake = await Fake.start(t, { sendMessage: () => ({ messageId: 1n }) });
  await Promise.all([fake.hive.send("bob", "x"), fake.hive.send("bob", "y"), fake.hive.info()]);
  const [{ request, requestHeader }, ...others] = fake.hellos;
  assert.equal(others.length, 0);
  assert.deepEqual([request.clientName, request.clientVersion], [KIT, VERSION]);
  assert.equal(request.contractRevision, 1);
  assert.equal(requestHeader.get("hive-process-token"), "token");
  assert.equal(requestHeader.has("traceparent"), false);
});

test("a refused handshake is the refusal of its call, and is repeated like it", async (t) => {
  const hello = (count) => {
    if (count === 1) throw refusal("Unavailable", "STARTING");
    if (count === 3) throw refusal("PermissionDenied", "PEER_NOT_TRUSTED");
  };
  const fake = await Fake.start(t, { hello });
  await fake.hive.info();
  assert.equal(fake.hellos.length, 2);
  fake.cut();
  assert.equal((await failure(fake.hive.send("bob", "x"))).reason, "PEER_NOT_TRUSTED");
  assert.equal(fake.hellos.length, 3);
});

test("capabilities are known by name", async (t) => {
  const hive = (await Broker.start(t)).connect("ada");
  assert.equal(await hive.supports("loose_ends"), true);
  assert.equal(await hive.supports("flying"), false);
  assert.equal(await hive.supports("$typeName"), false);
});

test("a closed client fails its calls, and closes twice", async (t) => {
  const broker = await Broker.start(t);
  const hive = broker.connect("ada");
  const options = { timeoutMs: 100_000 };
  const call = hive.call(InboxService.method.receiveMessages, { wait: { seconds: 90n } }, options);
  await hive.info();
  const [error] = await Promise.all([failure(call), hive.close(), hive.close()]);
  assert.equal(error.code, "CANCELLED");
  assert.equal((await failure(hive.send("bob", "x"))).code, "CANCELLED");
  assert.throws(() => hive.mail(), { code: "CANCELLED" });
  assert.throws(() => hive.follow(), { code: "CANCELLED" });
  await hive.close();
  await connect(broker.socket("ada")).close();
});

test("nothing is left after close, and no warning is printed", async (t) => {
  const broker = await Broker.start(t);
  const program = `
    import { connect } from "${new URL("../dist/index.js", import.meta.url)}";
    const hive = connect();
    const mail = hive.mail();
    const facts = hive.follow();
    await facts.opened;
    const { signal } = new AbortController();
    const sends = Array.from({ length: 40 }, (_, i) => hive.send("ada", "m" + i, { signal }));
    await Promise.all(sends);
    const asked = await hive.ask("bob", "Well?");
    const outcome = asked.outcome().catch(({ code }) => console.log(code));
    for await (const delivery of mail) {
      await delivery.ack();
      break;
    }
    await hive.close();
    await outcome;
    const left = process.getActiveResourcesInfo();
    console.log(left.filter((name) => !/^(TTY|Pipe|FSReq|Immediate)/.test(name)).join());
  `;
  const env = { ...process.env, HIVE_SOCKET: broker.socket("ada") };
  const options = { env, cwd: dirname(broker.socket("ada")), stdio: ["ignore", "pipe", "pipe"] };
  const child = spawn("node", ["--input-type=module", "-e", program], options);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (output += text));
  const [code] = await once(child, "close");
  assert.deepEqual([code, output.trim()], [0, "CANCELLED"]);
});

test("an idle client does not keep its program running", async (t) => {
  const broker = await Broker.start(t);
  const program = `
    import { connect } from "${new URL("../dist/index.js", import.meta.url)}";
    await connect().info();
  `;
  const env = { ...process.env, HIVE_SOCKET: broker.socket("ada") };
  const child = spawn("node", ["--input-type=module", "-e", program], { env, stdio: "inherit" });
  assert.deepEqual(await once(child, "exit"), [0, null]);
});
