"""Measures the kit, or the generated client alone, for `make bench WORKLOADS=kits`.

    rates.py kit|generated send|receive SOCKET AGENT COUNT WINDOW

Sends COUNT messages to the agent, or takes and acks as many of its mail, with at most WINDOW of
them under way. Prints the seconds that it took. A tenth of COUNT goes before, and does not count.
"""

import asyncio
import sys
import time
import uuid

import grpc

import hive_client
from hive_client import v1

BODY = "x" * 200
ACKED = v1.DeliveryState.Value("DELIVERY_STATE_ACKED")


class Clock:
    """Notes when the counted part begins and ends."""

    def __init__(self, count):
        self.begin, self.end = count // 10, count // 10 + count
        self.done, self.started, self.stopped = 0, 0.0, asyncio.get_running_loop().create_future()

    def tick(self):
        self.done += 1
        if self.done == self.begin:
            self.started = time.monotonic()
        if self.done == self.end:
            self.stopped.set_result(time.monotonic() - self.started)


async def send(clock, window, one):
    turns = iter(range(clock.end))

    async def work():
        for _ in turns:
            await one()
            clock.tick()

    await asyncio.gather(*(work() for _ in range(window)))


async def kit(work, socket, agent, clock, window):
    async with hive_client.connect(socket) as hive:
        if work == "send":
            return await send(clock, window, lambda: hive.send(agent, BODY))

        async def handle(delivery):
            await delivery.ack()
            clock.tick()

        async with hive.mail(window=window) as mail:
            each = asyncio.create_task(mail.each(handle))
            await clock.stopped
        await each


async def generated(work, socket, agent, clock, window):
    options = [("grpc.default_authority", "localhost")]
    async with grpc.aio.insecure_channel(f"unix:{socket}", options) as channel:
        if work == "send":
            messages, to = v1.MessageServiceStub(channel), v1.Recipient(agent=agent)

            def one():
                id_ = str(uuid.uuid4())
                return messages.SendMessage(
                    v1.SendMessageRequest(request_id=id_, to=to, body=BODY), timeout=10
                )

            return await send(clock, window, one)
        call = v1.InboxServiceStub(channel).StreamDeliveries()
        size = v1.DeliveryWindow(deliveries=window)
        opening = v1.OpenDeliveries(stream_id=str(uuid.uuid4()), window=size)
        await call.write(v1.StreamDeliveriesRequest(open=opening))
        async for step in call:
            if leases := step.leased.deliveries:
                acks = [v1.Settlement(lease_token=one.lease_token, ack=v1.Ack()) for one in leases]
                settle = v1.SettleDeliveriesRequest(settlements=acks)
                await call.write(v1.StreamDeliveriesRequest(settle=settle))
            for result in step.settled.results:
                assert result.state == ACKED, result
                clock.tick()
            if clock.stopped.done():
                return await call.done_writing()


async def main():
    way, work, socket, agent, count, window = sys.argv[1:]
    clock = Clock(int(count))
    await {"kit": kit, "generated": generated}[way](work, socket, agent, clock, int(window))
    print(await clock.stopped)


asyncio.run(main())
