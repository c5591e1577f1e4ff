// A stand-in for the broker: it answers as a test says, over real connections.

import { createServer } from "node:http2";
import { mkdtempSync, rmSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import {
  BadRequestSchema, ErrorInfoSchema, RetryInfoSchema,
} from "../dist/gen/google/rpc/error_details_pb.js";
import { InboxService, MessageService, ServerInfoService } from "../dist/gen/v1.js";
import { connect } from "../dist/index.js";

export class Fake {
  /** Starts a stand-in with handlers by the names of the methods, and ends it with the test. */
  static async start(test, handlers = {}) {
    const fake = new Fake(handlers);
    test.after(() => fake.stop());
    fake.server.listen(fake.path);
    await once(fake.server, "listening");
    return fake;
  }

  constructor(handlers) {
    this.dir = mkdtempSync(join(tmpdir(), "hive-fake-"));
    this.path = join(this.dir, "hive.sock");
    this.hellos = [];
    this.sessions = new Set();
    const getServerInfo = (request, { requestHeader }) => {
      this.hellos.push({ request, requestHeader });
      return handlers.hello?.(this.hellos.length) ?? { version: "fake" };
    };
    const routes = (router) => {
      router.service(ServerInfoService, { getServerInfo });
      router.service(MessageService, handlers);
      router.service(InboxService, handlers);
    };
    this.server = createServer(connectNodeAdapter({ routes }));
    this.server.on("session", (session) => {
      this.sessions.add(session);
      session.once("close", () => this.sessions.delete(session));
    });
    this.hive = connect(this.path, { processToken: "token", traceparent: "" });
  }

  /** Cuts all connections. */
  cut() {
    for (const session of this.sessions) session.destroy();
  }

  async stop() {
    await this.hive.close();
    this.cut();
    this.server.close();
    rmSync(this.dir, { recursive: true });
  }
}

/** Returns a refusal with the details that the broker sends. */
export function refusal(code, reason, facts = {}) {
  const { retryMs, fields = [], domain = "hive", metadata = {} } = facts;
  const details = [{ desc: ErrorInfoSchema, value: { reason, domain, metadata } }];
  if (retryMs !== undefined) {
    details.push({ desc: RetryInfoSchema, value: { retryDelay: durationFromMs(retryMs) } });
  }
  if (fields.length) details.push({ desc: BadRequestSchema, value: { fieldViolations: fields } });
  return new ConnectError(`refused: ${reason}`, Code[code], undefined, details);
}
