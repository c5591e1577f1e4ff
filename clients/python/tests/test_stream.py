"""The steps of a stream of deliveries, against a broker with set answers."""

import asyncio

from google.rpc.error_details_pb2 import ErrorInfo
from grpc import StatusCode

from hive_client import v1

from .fake import Fake, Stream
from .support import HiveTest, within

ACKED = v1.DeliveryState.DELIVERY_STATE_ACKED


def lease(number: int) -> v1.LeasedDelivery:
    delivery = v1.Delivery(message=v1.Message(id=number, body=str(number)), attempt=1)
    return v1.LeasedDelivery(delivery=delivery, lease_token=f"token-{number}")


def leased(*numbers: int) -> v1.LeasedDeliveries:
    return v1.LeasedDeliveries(deliveries=map(lease, numbers))


def opened(*numbers: int, complete: bool = True) -> v1.DeliveriesOpened:
    return v1.DeliveriesOpened(deliveries=map(lease, numbers), complete=complete)


def results(*reasons: "v1.Reason | None") -> v1.SettleDeliveriesResponse:
    return v1.SettleDeliveriesResponse(
        results=[
            v1.SettlementResult(state=ACKED)
            if reason is None
            else v1.SettlementResult(refusal=v1.Refusal(reason=reason, message="refused"))
            for reason in reasons
        ]
    )


class Streams(HiveTest):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.fake = Fake(self.directory / "fake.sock")
        await self.fake.start()
        self.mail = self.connect(self.fake.path).mail(window=7, orphan_grace=9, stream_id="mine")
        await self.mail.__aenter__()

    async def stream(self, *held: int) -> Stream:
        """Accepts the next stream of the client, which has these leases."""
        stream = await within(self.fake.streams.get())
        opening = (await within(stream.read())).open
        self.assertEqual((opening.stream_id, opening.window.deliveries), ("mine", 7))
        self.assertEqual(opening.orphan_grace.seconds, 9)
        await stream.write(opened=opened(*held))
        return stream

    async def settled(self, stream: Stream) -> list[str]:
        """Reads one `settle` of the client, and returns its tokens."""
        request = await within(stream.read())
        return [one.lease_token for one in request.settle.settlements]

    async def closed(self, stream: Stream) -> None:
        """Closes the mail, and checks that the client has closed its side first."""
        closing = asyncio.create_task(self.mail.close())
        self.assertIsNone(await within(stream.read()))
        stream.end()
        await within(closing)

    async def test_a_ping_is_answered(self):
        stream = await self.stream()
        await stream.write(ping=v1.Ping())
        self.assertEqual((await within(stream.read())).WhichOneof("step"), "pong")
        await self.closed(stream)

    async def test_settlements_that_are_made_together_go_together(self):
        stream = await self.stream(*range(1, 301))
        deliveries = [await within(anext(self.mail)) for _ in range(300)]
        acks = [asyncio.create_task(delivery.ack()) for delivery in deliveries]
        self.assertEqual(len(await self.settled(stream)), 120)
        await stream.write(settled=results(*[None] * 120))
        self.assertEqual(len(await self.settled(stream)), 120)
        await stream.write(settled=results(*[None] * 120))
        self.assertEqual(len(await self.settled(stream)), 60)
        await stream.write(settled=results(*[None] * 59, v1.Reason.REASON_LEASE_LOST))
        self.assertEqual(await within(asyncio.gather(*acks[:-1])), [ACKED] * 299)
        await self.refused(acks[-1], "FAILED_PRECONDITION", "LEASE_LOST")
        self.assertTrue(deliveries[-1].lost.is_set())
        await self.closed(stream)

    async def test_a_new_stream_goes_on_where_the_old_one_broke(self):
        stream = await self.stream(1)
        await stream.write(leased=leased(2, 3, 4, 5))
        first, second, third, fourth = [await within(anext(self.mail)) for _ in range(4)]
        sent = asyncio.create_task(first.ack())
        self.assertEqual(await self.settled(stream), ["token-1"])
        stream.end((StatusCode.UNAVAILABLE,))
        # 5 waits in the kit, and is listed no more; neither are 1, which may be committed, and 3.
        unsent = asyncio.create_task(second.ack())
        stream = await within(self.fake.streams.get())
        await within(stream.read())
        await stream.write(opened=opened(2, complete=False))
        await stream.write(opened=opened(4, 6))
        self.assertEqual(await self.settled(stream), ["token-1", "token-2"])
        await stream.write(settled=results(None, None))
        self.assertEqual(await within(asyncio.gather(sent, unsent)), [ACKED, ACKED])
        self.assertTrue(third.lost.is_set())
        self.assertFalse(first.lost.is_set() or second.lost.is_set() or fourth.lost.is_set())
        await self.refused(third.ack(), "FAILED_PRECONDITION", "LEASE_LOST")
        self.assertEqual((await within(anext(self.mail))).message.id, 6)
        await self.closed(stream)
        self.assertTrue(fourth.lost.is_set())

    async def test_ends_that_are_no_breaks_end_the_iteration(self):
        stream = await self.stream(1)
        delivery = await within(anext(self.mail))
        for reason in ("STREAM_SILENT", "DRAINING"):
            stream.end((StatusCode.ABORTED, ErrorInfo(domain="hive", reason=reason)))
            stream = await self.stream(1)
        ack = asyncio.create_task(delivery.ack())
        await self.settled(stream)
        replaced = ErrorInfo(domain="hive", reason="STREAM_REPLACED")
        stream.end((StatusCode.ABORTED, replaced))
        await self.refused(ack, "ABORTED", "STREAM_REPLACED")
        await self.refused(anext(self.mail), "ABORTED", "STREAM_REPLACED")
        self.assertTrue(delivery.lost.is_set())

    async def test_a_cancelled_settlement_is_settled_anyway(self):
        stream = await self.stream(1)
        ack = asyncio.create_task((await within(anext(self.mail))).ack())
        self.assertEqual(await self.settled(stream), ["token-1"])
        ack.cancel()
        closing = asyncio.create_task(self.mail.close())
        await stream.write(settled=results(None))
        self.assertIsNone(await within(stream.read()))
        stream.end()
        await within(closing)

    async def test_steps_and_reasons_of_newer_brokers_are_no_faults(self):
        stream = await self.stream()
        await stream.write()
        await stream.write(leased=leased(1))
        ack = asyncio.create_task((await within(anext(self.mail))).ack())
        await self.settled(stream)
        await stream.write(settled=results(4711))
        await self.refused(ack, "UNKNOWN", "4711")
        await self.closed(stream)

    async def test_a_result_without_a_settlement_ends_the_iteration(self):
        stream = await self.stream(1)
        delivery = await within(anext(self.mail))
        await stream.write(settled=results(None))
        await self.refused(anext(self.mail), "INTERNAL")
        self.assertTrue(delivery.lost.is_set())
        stream.end()

    async def test_a_reason_is_seen_beside_a_write(self):
        stream = await self.stream(1, 2)
        first, second = await within(anext(self.mail)), await within(anext(self.mail))
        stream.end((StatusCode.ABORTED, ErrorInfo(domain="hive", reason="STREAM_REPLACED")))
        for _ in range(200):
            await asyncio.sleep(0)
            if second.lost.is_set():
                break
            if not first.is_settled:
                asyncio.create_task(first.ack()).add_done_callback(lambda task: task.exception())
        await self.refused(anext(self.mail), "ABORTED", "STREAM_REPLACED")
