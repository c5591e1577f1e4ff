// One HTTP/2 connection to the broker, with its handshake. It never connects again: a call on a
// connection that is gone fails with UNAVAILABLE.

import { connect as connectSocket } from "node:net";
import * as http2 from "node:http2";
import type {
  DescMessage, DescMethod, DescMethodStreaming, DescMethodUnary, MessageInitShape, MessageShape,
} from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { HiveError } from "./error.js";
import { ServerInfoService, type GetServerInfoResponse } from "./gen/v1.js";
import type { Scope } from "./scope.js";

/** The broker ignores the authority, but it must be a valid one. */
const AUTHORITY = "http://localhost";

/** The revision of the contract that the kit was written for. */
const CONTRACT_REVISION = 1;

/** The deadline of a handshake, in milliseconds. */
const HANDSHAKE_MS_MAX = 10_000;

/** What a connection states about its client. */
export interface Greeting {
  program: string;
  version: string;
  /** The metadata of each call. */
  headers: Record<string, string>;
}

export class Connection {
  readonly authority = AUTHORITY;
  readonly closed: Promise<void>;
  readonly #session: http2.ClientHttp2Session;
  readonly #transport: Transport;
  readonly #greeting: Greeting;
  #info: Promise<GetServerInfoResponse> | undefined;
  #streams = 0;

  private constructor(session: http2.ClientHttp2Session, greeting: Greeting) {
    this.#session = session;
    this.#greeting = greeting;
    this.closed = new Promise((resolve) => session.once("close", resolve));
    const options = { baseUrl: AUTHORITY, sessionManager: this, acceptCompression: [] };
    this.#transport = createGrpcTransport(options);
    // An idle connection does not keep the program running.
    session.unref();
  }

  /** Connects to a socket. */
  static open(path: string, greeting: Greeting): Promise<Connection> {
    const session = http2.connect(AUTHORITY, { createConnection: () => connectSocket({ path }) });
    return new Promise((resolve, reject) => {
      session.once("connect", () => resolve(new Connection(session, greeting)));
      const fail = (cause: Error) => {
        const text = `Cannot connect to ${path}: ${cause.message}`;
        const advice = "Start hived, or set HIVE_SOCKET to the path of its socket.";
        reject(new HiveError("UNAVAILABLE", `${text}. ${advice}`, { cause }));
      };
      // Without a listener a later error would end the program. Calls see it in their own way.
      session.on("error", fail);
      session.once("close", () => fail(new Error("the socket was closed")));
    });
  }

  /** Whether new calls can be made. */
  get usable(): boolean {
    return !this.#session.closed && !this.#session.destroyed;
  }

  /** Cuts the connection. Calls on it end only because of the error. */
  close(): void {
    this.#session.destroy(new Error("the connection is closed"));
  }

  /** Makes the handshake, once; a failed one is made again by the next call. */
  handshake(): Promise<GetServerInfoResponse> {
    const { program, version } = this.#greeting;
    const request = {
      clientName: program, clientVersion: version, contractRevision: CONTRACT_REVISION,
    };
    const { getServerInfo } = ServerInfoService.method;
    const call = () => this.unary(getServerInfo, request, undefined, HANDSHAKE_MS_MAX);
    this.#info ??= call().catch((error) => {
      this.#info = undefined;
      throw error;
    });
    return this.#info;
  }

  /** Makes one attempt at a call, with a deadline in milliseconds. */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    scope: Scope | undefined,
    timeoutMs: number,
  ): Promise<MessageShape<O>> {
    const { headers } = this.#greeting;
    // The transport takes 0 as no deadline.
    const deadline = Math.max(1, Math.ceil(timeoutMs));
    try {
      const call = this.#transport.unary(method, scope?.signal, deadline, headers, request);
      return (await call).message;
    } catch (error) {
      throw this.#failure(error, method, scope);
    }
  }

  /** Opens a stream, and reads it. It is cancelled when its reader leaves. */
  async *stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    requests: AsyncIterable<MessageInitShape<I>>,
    scope: Scope,
  ): AsyncGenerator<MessageShape<O>, undefined> {
    scope.check();
    const { headers } = this.#greeting;
    const controller = new AbortController();
    const cancel = () => controller.abort();
    scope.signal.addEventListener("abort", cancel);
    try {
      const { signal } = controller;
      const opened = this.#transport.stream(method, signal, undefined, headers, requests);
      for await (const message of (await opened).message) yield message;
    } catch (error) {
      throw this.#failure(error, method, scope);
    } finally {
      scope.signal.removeEventListener("abort", cancel);
      cancel();
    }
  }

  /** Sends the head of a call; the transport calls it. */
  async request(
    method: string,
    path: string,
    headers: http2.OutgoingHttpHeaders,
    options: http2.ClientSessionRequestOptions,
  ): Promise<http2.ClientHttp2Stream> {
    if (!this.usable) throw new HiveError("UNAVAILABLE", "The connection to the broker is gone.");
    const stream = this.#session.request({ ...headers, ":method": method, ":path": path }, options);
    if (this.#streams++ === 0) this.#session.ref();
    stream.once("close", () => {
      if (--this.#streams === 0) this.#session.unref();
    });
    return stream;
  }

  /** Does nothing: a unix socket needs no pings. The transport calls it. */
  notifyResponseByteRead(): void {}

  /** Returns the error of a call. That of a broken connection is always UNAVAILABLE. */
  #failure(thrown: unknown, { parent, name }: DescMethod, scope: Scope | undefined): HiveError {
    if (scope?.reason) return scope.reason;
    const error = HiveError.from(thrown);
    if (error.reason) return error;
    const call = `${parent.name}/${name}`;
    if (!this.usable) {
      const text = `The connection to the broker broke during ${call}: ${error.message}`;
      return new HiveError("UNAVAILABLE", text, { cause: thrown });
    }
    return new HiveError(error.code, `${call} failed: ${error.message}`, { cause: thrown });
  }
}
