"""The driver of the kit for the conformance tests: one JSON object per line, in both directions.

Each request has a task of its own, so a slow verb stops no other. Each has one answer.
"""

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from google.protobuf import descriptor_pool
from values import arguments, failure, parsed, plain, shown

import hive_client
from hive_client import HiveError, v1


async def within(timeout, work):
    try:
        async with asyncio.timeout(timeout):
            return await work
    except TimeoutError:
        raise HiveError("DEADLINE_EXCEEDED", f"nothing came within {timeout} s") from None


class Stream:
    """An open stream, with the deliveries that it handed out."""

    def __init__(self, stream):
        self.stream, self.close, self.deliveries = stream, stream.close, {}
        self.handled = {"begun": 0, "done": 0, "cancelled": 0}

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
        if mode.startswith("fail"):
            raise RuntimeError("handler failed" * (1000 if mode == "fail long" else 1))


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
                return shown(target.known(await within(timeout, anext(target.stream, None))))
            case "ack" | "nack" | "release":
                delivery = target.deliveries[args.pop("token")]
                return {"state": v1.DeliveryState.Name(await getattr(delivery, verb)(**args))}
            case "lost":
                await within(timeout, target.deliveries[args["token"]].lost.wait())
            case "each":
                self.objects[as_], mode = target, args["mode"]
                await target.stream.each(lambda delivery: target.handle(delivery, mode))
            case "handled":
                return target.handled
            case "cancel":
                if task := self.tasks.get(args["request"]):
                    task.cancel()
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
