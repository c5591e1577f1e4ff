// A hive of its own for each test: the agents ada and bob in a temporary directory.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "../dist/index.js";

const programs = process.env.HIVE_TEST_BIN_DIR;
if (!programs) throw new Error("HIVE_TEST_BIN_DIR is not set. Set it to the directory of hived.");

const CONFIG = `
[agents.ada]
uids = [${process.getuid()}]
[agents.bob]
uids = [${process.getuid()}]
`;

export class Broker {
  /** Starts a hive, and ends it with the test. */
  static async start(test, config = "") {
    const broker = new Broker(config);
    test.after(() => broker.remove());
    await broker.start();
    return broker;
  }

  constructor(config) {
    this.dir = mkdtempSync(join(tmpdir(), "hive-"));
    this.hives = [];
    for (const name of ["state", "run"]) mkdirSync(join(this.dir, name));
    writeFileSync(join(this.dir, "hive.toml"), CONFIG + config);
  }

  socket(agent) {
    return join(this.dir, "run", agent ? `agents/${agent}/hive.sock` : "hived.sock");
  }

  /** Starts hived, and waits until it answers. */
  async start() {
    const place = ["--state-dir", join(this.dir, "state"), "--runtime-dir", join(this.dir, "run")];
    const args = ["--config", join(this.dir, "hive.toml"), ...place];
    const options = { stdio: ["ignore", "ignore", "pipe"] };
    this.process = spawn(join(programs, "hived"), args, options);
    this.log = "";
    this.process.stderr.setEncoding("utf8").on("data", (text) => (this.log += text));
    this.ended = once(this.process, "exit");
    const hive = connect(this.socket("bob"));
    await hive.info();
    await hive.close();
  }

  /** Ends hived with a signal, and waits for its end. */
  async stop(signal = "SIGKILL") {
    this.process.kill(signal);
    await this.ended;
  }

  /** Connects as an agent, or as the operator. */
  connect(agent, options) {
    const hive = connect(this.socket(agent), options);
    this.hives.push(hive);
    return hive;
  }

  async remove() {
    await Promise.all(this.hives.map((hive) => hive.close()));
    await this.stop();
    rmSync(this.dir, { recursive: true });
  }
}

/** Returns the error of a promise that has to fail. */
export async function failure(promise) {
  const outcome = await promise.then((value) => ({ value }), (error) => ({ error }));
  if (!("error" in outcome)) throw new Error(`it did not fail: ${outcome.value}`);
  return outcome.error;
}

/** Waits until a signal has fired. */
export async function fired(signal) {
  if (!signal.aborted) await once(signal, "abort");
}
