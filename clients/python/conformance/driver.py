"""The driver of the kit for the conformance tests: one JSON object per line, in both directions.

Each request has a task of its own, so a slow verb stops no other. Each has one answer.
"""

import asyncio
import functools
import json
import logging
import re
import sys

from google.protobuf import descriptor_pool
from google.protobuf.json_format import MessageToDict, ParseDict

import hive_client
from hive_client import Delivery, Fact, Gap, Hive, HiveError, Position, v1

CONVERSIONS = {
    "question_id": int,
    "in_reply_to": int,
    "to": lambda to: getattr(hive_client, to[1:].upper()) if to.startswith("@") else to,
    "after": lambda after: Position(after["logId"], int(after["sequence"])),
    "entries": lambda entries: [ParseDict(entry, v1.PublishedLooseEnd()) for entry in entries],
}

objects = {}  # by the names in `as`, and deliveries by the names of their streams and their tokens
tasks = {}  # of the verbs, by the ids of their requests


def arguments(args):
    """Returns the arguments of a verb, with the names and types of the kit."""
    converted = {}
    for camel, value in args.items():
        name = re.sub("[A-Z]", lambda capital: "_" + capital[0].lower(), camel)
        convert = CONVERSIONS.get(name, lambda same: same)
        converted["when" if name == "delay" else name] = convert(value)
    return converted


async def call(hive, method, request, timeout=None):
    """Calls the RPC of this name, as in `InboxService/GetInboxStatus`."""
    service, name = method.split("/")
    found = descriptor_pool.Default().FindMethodByName(f"hive.v1.{service}.{name}")
    message = ParseDict(request, getattr(v1, found.input_type.name)())
    stub = hive.stub(getattr(v1, f"{service}Stub"))
    return await hive.call(getattr(stub, name), message, timeout)


async def handler(mode, counts, _):
    """Handles a delivery of `each` as the mode says, and counts what it does."""
    counts["begun"] += 1
    try:
        if mode == "hang":
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        counts["cancelled"] += 1
        raise
    counts["done"] += 1
    if mode.startswith("fail"):
        raise RuntimeError("handler failed" * (1000 if mode == "fail long" else 1))


def step(item):
    """Returns the answer to `next`."""
    match item:
        case None:
            return {"end": True}
        case Delivery(token=token, attempt=attempt):
            row = MessageToDict(item.delivery)
            return {"token": token, "attempt": attempt, "message": row["message"], "delivery": row}
        case Fact(event=event):
            kind = {"fact": MessageToDict(event)}
        case _:
            kind = {"gap" if isinstance(item, Gap) else "logChanged": True}
    log_id, sequence = item.position
    return {**kind, "position": {"logId": log_id, "sequence": str(sequence)}}


async def perform(verb, args):
    """Does a verb, and returns what came of it."""
    of, as_, token = args.pop("of", None), args.pop("as", None), args.pop("token", None)
    target = objects.get(args.pop("on", of) if token is None else (of, token))
    match verb:
        case "connect":
            objects[as_] = hive_client.connect(**args)
        case "supports":
            return {"supported": await target.supports(**args)}
        case "call":
            return MessageToDict(await call(target, **args))
        case "ask":
            objects[as_] = await target.ask(**args)
            return MessageToDict(objects[as_].question)
        case "mail" | "follow":
            objects[as_] = await getattr(target, verb)(**args).__aenter__()
        case "next":
            item = await anext(target, None)
            if isinstance(item, Delivery):
                objects[of, item.token] = item
            return step(item)
        case "ack" | "nack" | "release":
            return {"state": v1.DeliveryState.Name(await getattr(target, verb)(**args))}
        case "lost":
            await target.lost.wait()
        case "each":
            objects[as_] = {"begun": 0, "done": 0, "cancelled": 0}
            await target.each(functools.partial(handler, args["mode"], objects[as_]))
        case "handled":
            return target
        case "close":
            await target.close()
        case "cancel":
            tasks[args["request"]].cancel()
        case _:
            return MessageToDict(await getattr(target, verb)(**args))
    return {}


def failure(error):
    """Returns the answer to a verb that failed."""
    if isinstance(error, asyncio.CancelledError):
        error = HiveError("CANCELLED", "the verb is cancelled")
    elif not isinstance(error, HiveError):
        error = HiveError("INTERNAL", repr(error))  # a fault of the kit or of the driver
    parts = {name: getattr(error, name) for name in ("code", "reason", "message", "metadata")}
    if error.retry_after is not None:
        parts["retryAfter"] = error.retry_after
    return {**parts, "fields": [field._asdict() for field in error.fields]}


async def handle(request):
    try:
        outcome = {"ok": await perform(request["verb"], arguments(request["args"]))}
    except (Exception, asyncio.CancelledError) as error:
        outcome = {"error": failure(error)}
    print(json.dumps({"id": request["id"], **outcome}), flush=True)


async def main():
    print(json.dumps({"kit": "python", "version": hive_client.__version__}), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        request = json.loads(line)
        tasks[request["id"]] = asyncio.create_task(handle(request))
        await asyncio.sleep(0)  # the task begins, so that a cancel is answered
    for hive in [value for value in objects.values() if isinstance(value, Hive)]:
        await hive.close()


logging.disable()  # handlers fail on purpose
asyncio.run(main())
