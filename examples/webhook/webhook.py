"""Receives webhooks and wakes an agent with them.

    POST /hooks/LABEL
    X-Signature-256: sha256=HMAC      HMAC-SHA256 of the body with the secret, in hex
    X-Delivery: ID                    optional: a hook that is sent again has the same id
    {"ref": "refs/heads/main", "after": "4f2c1e", "repository": {"full_name": "hive"}}

A hook is answered with 202 when the message to the agent is on disk. Environment:

    HIVE_SOCKET           the agent's socket
    WEBHOOK_SECRET_FILE   file with the secret that the sender of the hooks has too
    WEBHOOK_LISTEN        address and port (default: 127.0.0.1:8080; port 0 is any free one)
"""

import hashlib
import hmac
import json
import math
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from hive_client import HiveError, sync

BODY_BYTES_MAX = 64 * 1024
# Senders of hooks wait for 10 s or so. The kit repeats the wake within this time, in seconds.
WAKE_TIMEOUT = 5.0


class RefusedError(Exception):
    """A hook that is not taken: the status, and the sentence for its sender."""


def message(event: object) -> tuple[str, str]:
    """Returns the text for the agent and the coalescing key. Adapt this to your hooks."""
    match event:
        case {"ref": str(ref), "after": str(commit), "repository": {"full_name": str(name)}}:
            # Pushes to one branch have one key: a newer one replaces what the agent has not seen.
            # The digest has a fixed length, because a key has at most 128 characters.
            key = hashlib.sha256(f"{name} {ref}".encode()).hexdigest()
            return f"Push to {ref} of {name}: it is now at {commit}.", key
        case dict():
            return json.dumps(event, indent=1), ""  # no key: each of these is a message
    raise RefusedError(400, "The body is not a JSON object.")


class Handler(BaseHTTPRequestHandler):  # each request has a thread of its own
    server: "Server"
    timeout = 10.0  # seconds of each read

    def do_POST(self) -> None:
        try:
            self.take()
        except RefusedError as refused:
            status, sentence = refused.args
            self.reply(status, {"error": sentence})
        except HiveError as error:
            self.refuse(error)

    def take(self) -> None:
        """Checks the hook, and wakes the agent. Nothing of it is used before its signature."""
        root, _, label = self.path.removeprefix("/").partition("/")
        if root != "hooks" or not label:
            raise RefusedError(404, "Send hooks to /hooks/LABEL.")
        body = self.body()
        signed = "sha256=" + hmac.new(self.server.secret, body, hashlib.sha256).hexdigest()
        given = self.headers.get("X-Signature-256", "")
        # It compares in constant time, so that the time does not show how much is right.
        if not hmac.compare_digest(given.encode(), signed.encode()):
            raise RefusedError(401, "X-Signature-256 is not the signature of this body.")
        try:
            event = json.loads(body.decode())
            json.dumps(event, ensure_ascii=False).encode()  # fails for halves of characters
        except (ValueError, RecursionError):
            raise RefusedError(400, "The body is not JSON in UTF-8.") from None
        text, key = message(event)
        # With the sender's own id a hook that comes again is one message, not two.
        delivery = self.headers.get("X-Delivery")
        request_id = f"{label}:{delivery}" if delivery else ""
        receipt = self.server.agent.wake(label, text, coalescing_key=key, request_id=request_id)
        self.reply(202, {"message_id": receipt.message_id})

    def body(self) -> bytes:
        """Reads the body, if its size is stated and allowed."""
        stated = self.headers.get("Content-Length", "")
        if not (stated.isascii() and stated.isdecimal() and len(stated) < 20):
            raise RefusedError(400, "The request needs a Content-Length.")
        if int(stated) > BODY_BYTES_MAX:
            # Bytes without a reader would reset the connection before the answer arrives.
            self.rfile.read(min(int(stated), 16 * BODY_BYTES_MAX))
            raise RefusedError(413, f"The body has more than {BODY_BYTES_MAX} bytes.")
        return self.rfile.read(int(stated))

    def refuse(self, error: HiveError) -> None:
        """Answers a hook whose wake failed: the sender's fault, or a reason to send it again."""
        self.log_error("%s", error)
        if error.reason == "BODY_TOO_LARGE":
            self.reply(413, {"error": error.message})
        elif error.code in ("INVALID_ARGUMENT", "ALREADY_EXISTS"):
            self.reply(400, {"error": error.message})
        elif error.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"):
            after = str(math.ceil(error.retry_after or WAKE_TIMEOUT))
            self.reply(503, {"error": "The hive cannot take it now: send it again."}, after)
        else:
            self.reply(500, {"error": "The hive refused it: see the log of this program."})

    def reply(self, status: int, answer: dict[str, object], retry_after: str = "") -> None:
        body = json.dumps(answer).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for the hooks under way

    def __init__(self, address: tuple[str, int], agent: sync.Hive, secret: bytes) -> None:
        super().__init__(address, Handler)
        self.agent = agent
        self.secret = secret


def main() -> None:
    secret = Path(os.environ["WEBHOOK_SECRET_FILE"]).read_bytes().strip()
    if not secret:
        sys.exit("the file in WEBHOOK_SECRET_FILE is empty: put the secret into it")
    host, _, port = os.environ.get("WEBHOOK_LISTEN", "127.0.0.1:8080").rpartition(":")
    # Blocked before the first thread starts, so that only `sigwait` takes them.
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    with (
        sync.connect(program="webhook", timeout=WAKE_TIMEOUT) as agent,
        Server((host, int(port)), agent, secret) as server,
    ):
        threading.Thread(target=server.serve_forever).start()
        print(f"listening on {host}:{server.server_port}", flush=True)
        signal.sigwait(ends)
        server.shutdown()


if __name__ == "__main__":
    main()
