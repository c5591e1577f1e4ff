// What is in the package: the generated code, the types, and the example of the README.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Broker } from "./broker.mjs";

const kit = fileURLToPath(new URL("..", import.meta.url));
const run = promisify(execFile);
const text = (file) => readFileSync(file, "utf8");

const protoc = existsSync(join(kit, "../../.cache/python/bin/python3"));
const without = protoc ? false : "protoc is missing; tests/setup.sh installs it";

test("the generated code is that of proto/", { skip: without }, async (t) => {
  const made = mkdtempSync(join(tmpdir(), "hive-gen-"));
  t.after(() => rmSync(made, { recursive: true }));
  await run(join(kit, "generate.sh"), [made]);
  const files = (directory) =>
    readdirSync(directory, { recursive: true }).filter((name) => name.endsWith(".ts")).sort();
  const committed = join(kit, "src/gen");
  assert.deepEqual(files(committed), files(made));
  for (const name of files(made)) {
    assert.equal(text(join(committed, name)), text(join(made, name)));
  }
});

test("a program in TypeScript compiles against the types", async () => {
  const tsc = join(kit, "node_modules/.bin/tsc");
  const flags = "--noEmit --strict --module nodenext --target es2022 --types node";
  const lib = "--lib es2023,esnext.disposable";
  await run(tsc, [...flags.split(" "), ...lib.split(" "), join(kit, "tests/usage.ts")]);
});

test("the example of the README works", async (t) => {
  const broker = await Broker.start(t);
  await broker.connect("bob").send("ada", "It is green.");
  const [, example] = /```js\n(\/\/ example\.mjs\n[^`]*)```/.exec(text(join(kit, "README.md")));
  const env = { ...process.env, HIVE_SOCKET: broker.socket("ada") };
  const child = spawn("node", ["--input-type=module", "-e", example], { cwd: kit, env });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
  assert.deepEqual(await once(child, "close"), [0, null], output);
  assert.match(output, /^sent \d+n\ngot \d+n It is green\.\n$/);
});
