"""The driver of the kit for the conformance tests: one JSON object per line, in both directions.

Each request has a task of its own, so a slow verb stops no other. Each has one answer.
"""

import asyncio
import json
import re
import sys
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from google.protobuf import descriptor_pool, json_format

import hive_client
from hive_client import HiveError, v1

plain, parsed = json_format.MessageToDict, json_format.ParseDict


def arguments(args):
    """Returns the arguments of a verb, with the names and types of the kit."""
    found = {re.sub("[A-Z]", lambda one: f"_{one[0].lower()}", name): args[name] for name in args}
    for name in {"question_id", "in_reply_to"} & found.keys():
        found[name] = int(found[name])
    if found.get("to", "").startswith("@"):
        found["to"] = getattr(hive_client, found["to"][1:].upper())
    if "delay" in found:
        found["when"] = found.pop("delay")
    if "entries" in found:
        found["entries"] = [parsed(entry, v1.PublishedLooseEnd()) for entry in found["entries"]]
    return found


def failure(error):
    if isinstance(error, asyncio.CancelledError):
        error = HiveError("CANCELLED", "the verb is cancelled")
    elif not isinstance(error, HiveError):
        error = HiveError("INTERNAL", repr(error))  # a fault of the kit or of the driver
    shown = {name: getattr(error, name) for name in ("code", "reason", "message", "metadata")}
    if error.retry_after is not None:
        shown["retryAfter"] = error.retry_after
    return {**shown, "fields": [one._asdict() for one in error.fields]}


def shown(item):
    """Returns the answer to `next`."""
    match item:
        case None:
            return {"end": True}
        case hive_client.Delivery(token=token, attempt=attempt, delivery=delivery):
            parts = {"message": plain(delivery.message), "delivery": plain(delivery)}
            return {"token": token, "attempt": attempt, **parts}
        case hive_client.Fact():
            kind = {"fact": plain(item.event)}
        case _:
            kind = {"gap" if isinstance(item, hive_client.Gap) else "logChanged": True}
    log_id, sequence = item.position
    return {**kind, "position": {"logId": log_id, "sequence": str(sequence)}}


class Stream:
    """A stream with an iterator; a `next` that times out leaves its item to the next one."""

    def __init__(self, stream):
        self.stream, self.close = stream, stream.close
        self.pending, self.deliveries = None, {}
        self.handled = {"begun": 0, "done": 0, "cancelled": 0}

    async def next(self, timeout):
        self.pending = self.pending or asyncio.create_task(anext(self.stream, None))
        if not (await asyncio.wait({self.pending}, timeout=timeout))[0]:
            raise HiveError("DEADLINE_EXCEEDED", f"nothing came within {timeout} s")
        item, self.pending = self.pending, None
        return self.known(item.result())

    def known(self, item):
        if isinstance(item, hive_client.Delivery):
            self.deliveries[item.token] = item
        return item

    async def handle(self, delivery, mode):
        self.known(delivery)
        self.handled["begun"] += 1
        try:
            if mode == "hang":
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.handled["cancelled"] += 1
            raise
        self.handled["done"] += 1
        if mode == "fail":
            raise RuntimeError("handler failed")


class Driver:
    def __init__(self):
        self.objects, self.tasks = {}, {}

    async def handle(self, request):
        answer = {"id": request["id"]}
        try:
            answer["ok"] = await self.perform(request["verb"], dict(request.get("args") or {}))
        except (Exception, asyncio.CancelledError) as error:
            answer["error"] = failure(error)
        print(json.dumps(answer), flush=True)

    async def perform(self, verb, args):
        target = self.objects.get(args.pop("on", None) or args.pop("of", None))
        name, as_, timeout = args.pop("method", None), args.pop("as", None), args.get("timeout")
        match verb:
            case "connect":
                self.objects[as_] = hive_client.connect(**args)
            case "close":
                await target.close()
            case "supports":
                return {"supported": await target.supports(args["capability"])}
            case "call":
                service, name = name.split("/")
                services = descriptor_pool.Default().FindServiceByName
                method = services(f"hive.v1.{service}").methods_by_name[name]
                request = parsed(args["request"], getattr(v1, method.input_type.name)())
                stub = target.stub(getattr(v1, f"{service}Stub"))
                return plain(await target.call(getattr(stub, name), request, timeout))
            case "info" | "send" | "answer" | "remind" | "wake" | "publish":
                return plain(await getattr(target, verb)(**arguments(args)))
            case "ask":
                self.objects[as_] = await target.ask(**arguments(args))
                return plain(self.objects[as_].question)
            case "outcome":
                return plain(await target.outcome(timeout))
            case "follow":
                after = args.pop("after", None)
                if after:
                    args["after"] = hive_client.Position(after["logId"], int(after["sequence"]))
                self.objects[as_] = Stream(await target.follow(**args).__aenter__())
            case "mail":
                self.objects[as_] = Stream(await target.mail(**arguments(args)).__aenter__())
            case "next":
                return shown(await target.next(timeout))
            case "ack" | "nack" | "release":
                delivery = target.deliveries[args.pop("token")]
                return {"state": v1.DeliveryState.Name(await getattr(delivery, verb)(**args))}
            case "lost":
                with suppress(TimeoutError):
                    lost = target.deliveries[args["token"]].lost
                    await asyncio.wait_for(lost.wait(), timeout)
                    return {}
                raise HiveError("DEADLINE_EXCEEDED", f"the lease is live after {timeout} s")
            case "each":
                self.objects[as_], mode = target, args["mode"]
                await target.stream.each(lambda delivery: target.handle(delivery, mode))
            case "handled":
                return target.handled
            case "cancel":
                with suppress(KeyError):  # it has ended
                    self.tasks[args["request"]].cancel()
            case _:
                raise ValueError(f"{verb} is not a verb")
        return {}

    async def main(self):
        reader = asyncio.StreamReader(limit=2**26)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        print(json.dumps({"kit": "python", "version": hive_client.__version__}), flush=True)
        async for line in reader:
            request = json.loads(line)
            task = self.tasks[request["id"]] = asyncio.create_task(self.handle(request))
            task.add_done_callback(lambda _, id_=request["id"]: self.tasks.pop(id_, None))
            await asyncio.sleep(0)  # the task begins, so that a cancel is answered
        hives = [one for one in self.objects.values() if isinstance(one, hive_client.Hive)]
        await asyncio.gather(*(hive.close() for hive in hives))
        for task in list(self.tasks.values()):
            task.cancel()
        await asyncio.gather(*self.tasks.values())


asyncio.run(Driver().main())
