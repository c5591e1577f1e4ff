// @ts-check
// The chat: posts by an incoming webhook, and replies by POST /replies. Replace this file by one
// for your chat; chatops.mjs needs only what it exports.

import { createHash, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

/** @typedef {{ id?: string | number, text: string }} Reply */
/** @typedef {{ url: string, token: string, listen: string, signal: AbortSignal }} Options */

const REPLY_BYTES_MAX = 64 * 1024;

/** @param {string} text */
const digest = (text) => createHash("sha256").update(text).digest();

export class Chat {
  #url;
  #signal;
  #server;

  /**
   * @param {Options} options `signal` ends the repeats of `tell`
   * @param {(reply: Reply) => Promise<{ status: number, text: string }>} answer
   */
  constructor({ url, token, listen, signal }, answer) {
    this.#url = url;
    this.#signal = signal;
    this.#server = createServer(async (request, response) => {
      const { status, text } = await this.#take(request, token, answer);
      response.writeHead(status, {
        "content-type": "application/json",
        ...(status === 503 && { "retry-after": "5" }),
      });
      response.end(`${JSON.stringify({ text })}\n`);
    });
    const colon = listen.lastIndexOf(":");
    this.#server.listen(Number(listen.slice(colon + 1)), listen.slice(0, colon), () => {
      const address = /** @type {import("node:net").AddressInfo} */ (this.#server.address());
      console.log(`listening on ${address.address}:${address.port}`);
    });
  }

  /** Posts a text once; the id shows a repeat. @param {string} id @param {string} text */
  async post(id, text) {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ id, text });
    const signal = AbortSignal.timeout(10_000);
    const { ok, status } = await fetch(this.#url, { method: "POST", headers, body, signal });
    if (!ok) throw new Error(`the chat answers ${status}`);
  }

  /** Posts a text until the chat has it. @param {string} id @param {string} text */
  async tell(id, text) {
    for (let pause = 500; ; pause = Math.min(2 * pause, 60_000)) {
      try {
        return await this.post(id, text);
      } catch (error) {
        console.error(`${id} is not posted; again in ${pause} ms:`, error);
      }
      await sleep(pause, undefined, { signal: this.#signal });
    }
  }

  /** Waits for the replies under way, and takes no more. */
  close() {
    return new Promise((resolve) => this.#server.close(resolve));
  }

  /**
   * @param {import("node:http").IncomingMessage} request
   * @param {string} token
   * @param {(reply: Reply) => Promise<{ status: number, text: string }>} answer
   */
  async #take(request, token, answer) {
    const { method, url, headers } = request;
    if (method !== "POST" || url !== "/replies") return { status: 404, text: "POST to /replies." };
    // A comparison in constant time, so that the time does not show how much is right.
    if (!timingSafeEqual(digest(headers.authorization ?? ""), digest(`Bearer ${token}`))) {
      return { status: 401, text: "The token in Authorization is not the right one." };
    }
    const length = Number(headers["content-length"] ?? NaN);
    if (Number.isNaN(length)) return { status: 400, text: "The request needs a Content-Length." };
    if (length > REPLY_BYTES_MAX) {
      return { status: 413, text: `The body has more than ${REPLY_BYTES_MAX} bytes.` };
    }
    const reply = /** @type {any} */ (await json(request).catch(() => undefined));
    const isId = ["string", "number", "undefined"].includes(typeof reply?.id);
    if (typeof reply?.text !== "string" || !isId) {
      return { status: 400, text: "The body is not JSON with a `text`, and perhaps an `id`." };
    }
    return answer(reply).catch((error) => {
      console.error(error);
      return { status: 500, text: "The bot has a fault: see its log." };
    });
  }
}
