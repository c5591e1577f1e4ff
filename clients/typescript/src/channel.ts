// The way to the broker: at most one usable connection, which is opened when a call needs it, and
// the scopes of all calls and streams, which end with the channel.

import type {
  DescMessage, DescMethodStreaming, MessageInitShape, MessageShape,
} from "@bufbuild/protobuf";
import { Connection, type Greeting } from "./connection.js";
import { HiveError } from "./error.js";
import { reopen } from "./retry.js";
import { Scope, type CallOptions } from "./scope.js";

const RECONNECT_MS_MIN = 50;
const RECONNECT_MS_MAX = 500;

export class Channel {
  readonly #path: string;
  readonly #greeting: Greeting;
  readonly #connections = new Set<Connection>();
  /** The scopes under way, and how those of streams are closed before the channel. */
  readonly #scopes = new Map<Scope, (() => Promise<void>) | undefined>();
  #current: Connection | undefined;
  #opening: Promise<Connection> | undefined;
  #closed: HiveError | undefined;

  constructor(path: string, greeting: Greeting) {
    this.#path = path;
    this.#greeting = greeting;
  }

  /** Runs work in a scope of its own. */
  async scoped<T>(options: CallOptions, work: (scope: Scope) => Promise<T>): Promise<T> {
    const scope = this.begin(options);
    try {
      return await work(scope);
    } finally {
      this.end(scope);
    }
  }

  /** Begins a scope; the caller ends it. Throws when the channel is closed. */
  begin(options: CallOptions, close?: () => Promise<void>): Scope {
    if (this.#closed) throw this.#closed;
    const scope = new Scope(options);
    this.#scopes.set(scope, close);
    return scope;
  }

  end(scope: Scope): void {
    scope.end();
    this.#scopes.delete(scope);
  }

  /** Returns a connection after its handshake. Waits for the broker until the scope ends. */
  async connection(scope: Scope): Promise<Connection> {
    const connection = await this.#connected(scope);
    await scope.race(connection.handshake());
    return connection;
  }

  /** Reads a watch until the scope ends. Each opening makes a request of its own. */
  watch<I extends DescMessage, O extends DescMessage>(
    scope: Scope,
    method: DescMethodStreaming<I, O>,
    request: () => MessageInitShape<I>,
  ): AsyncGenerator<MessageShape<O>, never> {
    const open = async function* (this: Channel) {
      const connection = await this.connection(scope);
      yield* connection.stream(method, only(request()), scope);
    };
    return reopen(scope, open.bind(this));
  }

  async #connected(scope: Scope): Promise<Connection> {
    let failure = "";
    for (let pause = RECONNECT_MS_MIN; ; pause = Math.min(2 * pause, RECONNECT_MS_MAX)) {
      try {
        if (this.#current?.usable) return this.#current;
        return await scope.race((this.#opening ??= this.#open()));
      } catch (thrown) {
        if (!scope.reason) failure = HiveError.from(thrown).message;
      }
      await scope.pause(pause * (0.5 + Math.random() / 2)).catch((end: HiveError) => {
        if (end.code !== "DEADLINE_EXCEEDED") throw end;
        throw new HiveError(end.code, `${end.message} ${failure}`.trimEnd());
      });
    }
  }

  async #open(): Promise<Connection> {
    try {
      const connection = await Connection.open(this.#path, this.#greeting);
      this.#connections.add(connection);
      void connection.closed.then(() => this.#connections.delete(connection));
      this.#current = connection;
      return connection;
    } finally {
      this.#opening = undefined;
    }
  }

  /** Closes every stream, ends every scope, and cuts every connection. */
  async close(): Promise<void> {
    await Promise.all([...this.#scopes.values()].map((close) => close?.()));
    const text = "The Hive is closed. Call connect again for a new one.";
    this.#closed ??= new HiveError("CANCELLED", text);
    for (const scope of this.#scopes.keys()) scope.abort(this.#closed);
    this.#scopes.clear();
    await this.#opening?.catch(() => {});
    const connections = [...this.#connections];
    for (const connection of connections) connection.close();
    await Promise.all(connections.map(({ closed }) => closed));
  }
}

async function* only<T>(item: T): AsyncGenerator<T> {
  yield item;
}
