// A socket between a client and the broker, which a test can cut.

import { once } from "node:events";
import { createServer, connect } from "node:net";

export class Proxy {
  /** Starts a proxy beside the socket of a broker, and ends it with the test. */
  static async start(test, target) {
    const proxy = new Proxy(target);
    test.after(() => proxy.stop());
    proxy.server.listen(proxy.path);
    await once(proxy.server, "listening");
    return proxy;
  }

  constructor(target) {
    this.path = `${target}-proxy`;
    this.open = true;
    this.sockets = new Set();
    this.server = createServer((client) => {
      const broker = connect(target);
      for (const socket of [client, broker]) {
        this.sockets.add(socket);
        socket.on("error", () => {}).once("close", () => this.sockets.delete(socket));
      }
      if (!this.open) return this.cut();
      client.pipe(broker).pipe(client);
    });
  }

  /** Cuts all connections. */
  cut() {
    for (const socket of this.sockets) socket.destroy();
  }

  stop() {
    this.cut();
    this.server.close();
  }
}
