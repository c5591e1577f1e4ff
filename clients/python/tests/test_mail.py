"""The stream of deliveries with a real broker: settlements, breaks, and its end."""

import asyncio
import signal

from hive_client import Delivery, v1

from .support import HiveTest, within

ACKED = v1.DeliveryState.DELIVERY_STATE_ACKED
READY = v1.DeliveryState.DELIVERY_STATE_READY
DEAD = v1.DeliveryState.DELIVERY_STATE_DEAD
LEASED = v1.DeliveryState.DELIVERY_STATE_LEASED
NOT_RECEIVED = v1.RedeliveryCause.REDELIVERY_CAUSE_NOT_RECEIVED


class Mail(HiveTest):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.broker.start()
        self.ada, self.bob = (
            self.connect(self.broker.socket("ada")),
            self.connect(self.broker.socket("bob")),
        )

    async def send(self, *bodies: str) -> None:
        for body in bodies:
            await within(self.ada.send("bob", body))

    async def test_each_settlement_returns_the_state_after_its_commit(self):
        await self.send("ack", "nack", "dead", "release")
        async with self.bob.mail() as mail:
            for body, settle, state in (
                ("ack", lambda one: one.ack(), ACKED),
                ("nack", lambda one: one.nack("ü" * 4096), READY),
                ("dead", lambda one: one.nack("broken", permanent=True), DEAD),
                ("release", lambda one: one.release(), READY),
            ):
                delivery = await within(anext(mail))
                self.assertEqual((delivery.message.body, delivery.attempt), (body, 1))
                self.assertIsNone(delivery.redelivery_cause)
                self.assertEqual(await within(settle(delivery)), state)
                await self.refused(delivery.ack(), "FAILED_PRECONDITION")
            again = await within(anext(mail))
            self.assertEqual((again.message.body, again.attempt), ("release", 1))
            self.assertEqual(again.redelivery_cause, NOT_RECEIVED)
        left = await self.deliveries("bob")
        self.assertEqual(left["nack"].last_error, "ü" * 2048)
        self.assertEqual((left["release"].state, left["release"].attempt), (READY, 1))

    async def test_a_window_bounds_what_is_out_and_many_settle_together(self):
        await self.send(*map(str, range(40)))
        async with self.bob.mail(window=16) as mail:
            taken = [await within(anext(mail)) for _ in range(16)]
            with self.assertRaises(TimeoutError):
                await asyncio.wait_for(anext(mail), 0.1)
            await within(asyncio.gather(*(delivery.ack() for delivery in taken)))
            bodies = [(await within(anext(mail))).message.body for _ in range(16)]
            self.assertEqual(bodies, [str(number) for number in range(16, 32)])

    async def test_each_acks_returns_and_nacks_exceptions(self):
        await self.send("good", "bad", "own")
        done = asyncio.Queue()

        async def handle(delivery):
            if delivery.message.body == "own":
                await delivery.nack("as I like", permanent=True)
            await done.put(delivery)
            if delivery.message.body == "bad":
                raise ValueError("it is bad")

        async with self.bob.mail() as mail:
            task = asyncio.create_task(mail.each(handle))
            for _ in range(3):
                await within(done.get())
            await within(mail.close())
            await within(task)
        left = await self.deliveries("bob")
        self.assertEqual(left["good"].state, ACKED)
        self.assertEqual((left["bad"].state, left["bad"].last_error), (READY, "it is bad"))
        self.assertEqual(left["own"].state, DEAD)

    async def test_the_error_of_a_handler_goes_to_the_log(self):
        await self.send("one", "two")
        async with self.bob.mail(window=1) as mail:
            await self.refused(mail.each("handler"), "INVALID_ARGUMENT")
            tries: asyncio.Queue[Delivery] = asyncio.Queue()

            def handle(delivery):
                tries.put_nowait(delivery)
                return delivery.no_such_name

            with self.assertLogs("hive_client", "WARNING") as log:
                task = asyncio.create_task(mail.each(handle))
                await within(tries.get())
                await within(tries.get())  # so the first was settled
        await within(task)
        self.assertRegex(log.output[0], r"handler of message \d+ failed\n[^\0]*no_such_name")

    async def test_close_cancels_handlers_and_releases_without_an_attempt(self):
        await self.send("one", "two", "three")
        begun, cancelled = asyncio.Queue(), []

        async def handle(delivery):
            await begun.put(delivery)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(delivery.message.body)
                raise

        async with self.bob.mail(window=2) as mail:
            task = asyncio.create_task(mail.each(handle))
            deliveries = [await within(begun.get()) for _ in range(2)]
        await within(task)
        await within(mail.close())
        self.assertEqual(sorted(cancelled), ["one", "two"])
        self.assertTrue(all(delivery.lost.is_set() for delivery in deliveries))
        error = await self.refused(deliveries[0].ack(), "CANCELLED")
        self.assertIn(f"message {deliveries[0].message.id}", error.message)
        self.assertEqual([one async for one in mail], [])
        for delivery in (await self.deliveries("bob")).values():
            self.assertEqual(delivery.state, READY)
            self.assertLessEqual(delivery.attempt, 1)
            self.assertEqual(delivery.last_error, "")

    async def test_a_cancelled_each_leaves_its_deliveries_to_close(self):
        await self.send("one")
        begun = asyncio.Event()

        async def handle(_):
            begun.set()
            await asyncio.Event().wait()

        async with self.bob.mail() as mail:
            task = asyncio.create_task(mail.each(handle))
            await within(begun.wait())
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await within(task)
        self.assertEqual((await self.deliveries("bob"))["one"].state, READY)

    async def test_leases_and_settlements_outlive_a_killed_broker(self):
        await self.send("kept", "acked")
        async with self.bob.mail() as mail:
            kept, acked = await within(anext(mail)), await within(anext(mail))
            self.broker.end(signal.SIGKILL)
            ack = asyncio.create_task(acked.ack())
            self.broker.start()
            self.assertEqual(await within(ack), ACKED)
            await self.send("later")
            self.assertEqual((await within(anext(mail))).message.body, "later")
            self.assertFalse(kept.lost.is_set())
            self.assertEqual(await within(kept.ack()), ACKED)

    async def test_a_lease_that_ended_is_lost_after_a_break(self):
        await self.send("dropped", "queued")
        cancelled, begun = asyncio.Event(), asyncio.Queue()

        async def handle(delivery):
            await begun.put(delivery)
            try:
                await delivery.lost.wait()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        async with self.bob.mail(window=1) as mail:
            task = asyncio.create_task(mail.each(handle))
            await within(begun.get())
            operator = self.connect(self.broker.operator)
            message = (await self.deliveries("bob"))["dropped"].message
            key = v1.DeliveryKey(agent="bob", message_id=message.id)
            stub = operator.stub(v1.InboxServiceStub)
            await within(operator.call(stub.AckDelivery, v1.AckDeliveryRequest(key=key)))
            await within(begun.get())  # the window has room for the next one
            self.assertFalse(cancelled.is_set())
            self.broker.end()
            self.broker.start()
            await within(cancelled.wait())
        await within(task)

    async def test_a_stream_that_is_replaced_ends_with_its_reason(self):
        await self.send("one")
        async with self.bob.mail(stream_id="same") as mail:
            delivery = await within(anext(mail))
            other = self.connect(self.broker.socket("bob"))
            async with other.mail(stream_id="same") as newer:
                taken = await within(anext(newer))
                self.assertEqual(taken.token, delivery.token)
                await self.refused(anext(mail), "ABORTED", "STREAM_REPLACED")
                await self.refused(mail.each(lambda _: None), "ABORTED", "STREAM_REPLACED")
                self.assertTrue(delivery.lost.is_set())
                await self.refused(delivery.ack(), "FAILED_PRECONDITION", "LEASE_LOST")
                self.assertEqual(await within(taken.ack()), ACKED)

    async def test_a_stream_that_is_refused_ends_at_once(self):
        async with self.connect(self.broker.operator).mail() as mail:
            await self.refused(anext(mail), "PERMISSION_DENIED", "NOT_AN_AGENT")
        async with self.bob.mail(orphan_grace=100_000) as mail:
            error = await self.refused(anext(mail), "INVALID_ARGUMENT", "FIELD_INVALID")
            self.assertEqual(error.fields[0].field, "open.orphan_grace")

    async def test_close_without_a_broker_waits_only_for_what_is_held(self):
        self.broker.end()
        async with asyncio.timeout(2):
            async with self.bob.mail() as mail:
                await asyncio.sleep(0)
        self.broker.start()
        await self.send("one")
        mail = self.bob.mail()
        await within(anext(mail))
        self.broker.end()
        closing = asyncio.create_task(mail.close())
        await asyncio.sleep(0)
        self.broker.start()
        await within(closing)
        self.assertEqual((await self.deliveries("bob"))["one"].state, READY)
        self.assertEqual((await self.deliveries("bob"))["one"].attempt, 1)

    async def test_a_mail_that_was_never_used_is_closed_at_once(self):
        await self.bob.mail().close()
        mail = self.bob.mail()
        await self.bob.close()
        self.assertEqual([one async for one in mail], [])

    async def test_nothing_is_lost_or_doubled_over_kills(self):
        count, kills = 400, 4  # every second one is a drain
        handled: asyncio.Queue[Delivery] = asyncio.Queue()

        async def send():
            for number in range(count):
                await self.ada.send("bob", str(number), timeout=60)

        async with asyncio.timeout(60), self.bob.mail(window=32) as mail:
            handling = asyncio.create_task(mail.each(handled.put))
            sending = asyncio.create_task(send())
            seen = []
            for number in range(count):
                seen.append((await handled.get()).message)
                if number % (count // (kills + 1)) == 50:
                    how = signal.SIGKILL if number % 160 < 80 else signal.SIGTERM
                    await asyncio.to_thread(self.broker.end, how)
                    await asyncio.to_thread(self.broker.start)
            await sending
        await handling
        self.assertTrue(handled.empty())
        self.assertEqual([message.body for message in seen], [str(one) for one in range(count)])
        left = await self.deliveries("bob")
        self.assertEqual(len(left), count)
        self.assertEqual({one.state for one in left.values()}, {ACKED})
