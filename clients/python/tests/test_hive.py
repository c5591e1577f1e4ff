"""The verbs with a real broker, and a broker that is not there, or is killed."""

import asyncio
import gc
import signal
from datetime import datetime, timedelta

import hive_client
from hive_client import EVERYONE, OPERATOR, PARENT, v1

from .support import LIMIT, HiveTest, sockets, within


class Verbs(HiveTest):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.broker.start()
        self.ada = self.connect(self.broker.socket("ada"))
        self.bob = self.connect(self.broker.socket("bob"))

    async def test_messages_reach_their_recipients(self):
        first = await within(self.ada.send("bob", "hello"))
        async with self.bob.mail() as mail:
            delivery = await within(anext(mail))
            self.assertEqual(delivery.message.id, first.message_id)
            await delivery.ack()
        reply = await within(self.bob.send("ada", "hi", in_reply_to=first.message_id))
        stub = self.bob.stub(v1.MessageServiceStub)
        request = v1.GetMessageRequest(message_id=reply.message_id)
        read = await within(self.bob.call(stub.GetMessage, request))
        self.assertEqual(read.message.in_reply_to, first.message_id)
        for to in (OPERATOR, PARENT, EVERYONE):
            self.assertEqual((await within(self.bob.send(to, "x"))).recipient_count, 1)

    async def test_a_repeat_with_its_id_has_no_second_effect(self):
        first = await within(self.ada.send("bob", "once", request_id="mine-1"))
        self.assertEqual(first, await within(self.ada.send("bob", "once", request_id="mine-1")))
        await self.refused(
            self.ada.send("bob", "other", request_id="mine-1"),
            "ALREADY_EXISTS",
            "REQUEST_ID_REUSED",
        )

    async def test_a_refusal_has_its_details(self):
        error = await self.refused(self.ada.send("bobb", "x"), "NOT_FOUND", "AGENT_NOT_FOUND")
        self.assertEqual(error.metadata, {"agent": "bobb", "nearest": "bob"})
        error = await self.refused(self.ada.send("bob", ""), "INVALID_ARGUMENT", "FIELD_INVALID")
        self.assertEqual(error.fields[0].field, "body")

    async def test_an_argument_that_cannot_be_right_is_named(self):
        for work in (
            self.ada.ask("bob", "Ship?", options="yes"),
            self.ada.send("bob", "x", timeout="2"),
            self.ada.send("bob", "x", timeout=float("nan")),
        ):
            error = await self.refused(work, "INVALID_ARGUMENT")
            self.assertRegex(error.message, "^(options|timeout) is .*: give ")
        with self.assertRaisesRegex(hive_client.HiveError, "after is 5: give a Position"):
            self.ada.follow(after=5)

    async def test_a_question_has_one_outcome(self):
        asked = await within(self.ada.ask("bob", "Ship?", options=["yes", "no"], ttl=60))
        self.assertEqual(asked.question.state, v1.QuestionState.QUESTION_STATE_OPEN)
        await self.refused(asked.outcome(timeout=0.05), "DEADLINE_EXCEEDED")
        outcome = asyncio.create_task(asked.outcome())
        await asyncio.sleep(0)
        await asyncio.to_thread(self.broker.end)
        await asyncio.to_thread(self.broker.start)
        answered = await within(self.bob.answer(asked.question.id, "Now.", choices=["yes"]))
        self.assertEqual(await within(outcome), answered)
        self.assertEqual(await within(asked.outcome()), answered)
        self.assertEqual(list(answered.answer.choices), ["yes"])
        await self.refused(
            self.bob.answer(asked.question.id, "Later."), "FAILED_PRECONDITION", "QUESTION_CLOSED"
        )

    async def test_reminders_wakes_and_loose_ends_are_stored(self):
        after = await within(self.ada.remind("tea", 90))
        self.assertEqual(after.state, v1.ReminderState.REMINDER_STATE_PENDING)
        at = datetime.now() + timedelta(hours=1)
        reminder = await within(self.ada.remind("cake", at))
        self.assertAlmostEqual(reminder.due_time.seconds, at.timestamp(), delta=1)
        first = await within(self.ada.wake("matrix", "one", coalescing_key="k"))
        second = await within(self.ada.wake("matrix", "two", coalescing_key="k"))
        self.assertEqual(second.superseded_message_id, first.message_id)
        entries = [v1.PublishedLooseEnd(key="a", text="open")]
        await within(self.ada.publish("matrix", entries))
        stub = self.ada.stub(v1.LooseEndServiceStub)
        listed = await within(self.ada.call(stub.ListLooseEnds, v1.ListLooseEndsRequest()))
        self.assertEqual({one.text for one in listed.loose_ends}, {"tea", "cake", "open"})

    async def test_a_call_waits_for_a_broker_that_is_not_there(self):
        self.broker.end(signal.SIGTERM)
        await self.refused(self.ada.send("bob", "x", timeout=0.1), "DEADLINE_EXCEEDED")
        sending = asyncio.create_task(self.ada.send("bob", "late"))
        await asyncio.sleep(0)
        await asyncio.to_thread(self.broker.start)
        self.assertTrue((await within(sending)).message_id)

    async def test_a_call_that_is_cancelled_at_any_step_leaves_no_connection(self):
        async with hive_client.connect(self.broker.socket("ada")) as first:
            await within(first.info())  # opens the descriptors of gRPC
            await within(self.ada.info())
        before = sockets()
        for steps in range(60):
            async with hive_client.connect(self.broker.socket("ada")) as hive:
                if steps % 2:
                    await within(hive.info())
                tasks = [
                    asyncio.create_task(hive.send("bob", "x")),
                    asyncio.create_task(hive.follow().__aenter__()),
                    asyncio.create_task(anext(hive.mail())),
                ]
                for _ in range(steps // 2):
                    await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
        del tasks, task  # their exceptions have frames with calls
        gc.collect()
        async with asyncio.timeout(LIMIT):
            while sockets() > before:  # noqa: ASYNC110 - gRPC gives no signal
                await asyncio.sleep(0.01)


class Following(HiveTest):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.broker.start()
        self.ada = self.connect(self.broker.socket("ada"))
        self.operator = self.connect(self.broker.operator)

    async def test_facts_come_once_and_in_order_over_breaks(self):
        sequences, bodies = [], 60

        async def send():
            for number in range(bodies):
                await self.ada.send("bob", str(number), timeout=60)

        async with asyncio.timeout(60), self.operator.follow() as facts:
            sending = asyncio.create_task(send())
            while len(sequences) < bodies:
                step = await anext(facts)
                self.assertIsInstance(step, hive_client.Fact)
                self.assertEqual(step.position.sequence, step.event.sequence)
                if step.event.kind == v1.EventKind.EVENT_KIND_MESSAGE_ACCEPTED:
                    sequences.append(step.event.sequence)
                if len(sequences) in (10, 30):
                    await asyncio.to_thread(self.broker.end)
                    await asyncio.to_thread(self.broker.start)
            await sending
        self.assertEqual(sequences, sorted(set(sequences)))
        async with self.operator.follow(after=step.position) as later:
            await self.ada.send("bob", "later")
            self.assertGreater((await within(anext(later))).position, step.position)

    async def test_a_cancelled_wait_loses_nothing(self):
        async with self.operator.follow() as facts:
            for _ in range(3):
                with self.assertRaises(TimeoutError):
                    await asyncio.wait_for(anext(facts), 0.02)
                sent = await self.ada.send("bob", "x")
                self.assertEqual((await within(anext(facts))).event.message_id, sent.message_id)

    async def test_another_log_is_reported_and_followed(self):
        position = hive_client.Position("0" * 32, 3)
        async with self.operator.follow(after=position) as facts:
            changed = await within(anext(facts))
            self.assertIsInstance(changed, hive_client.LogChanged)
            await self.ada.send("bob", "x")
            fact = await within(anext(facts))
            self.assertEqual(fact.position.log_id, changed.position.log_id)
            self.assertGreater(fact.position, changed.position)

    async def test_close_ends_the_iteration(self):
        facts = self.operator.follow()
        waiting = asyncio.create_task(anext(facts, "the end"))
        await self.operator.info()
        await facts.close()
        self.assertEqual(await within(waiting), "the end")
        await facts.close()
        self.assertEqual([one async for one in facts], [])
        other = await self.operator.follow().__aenter__()
        waiting = asyncio.create_task(anext(other, "the end"))
        await asyncio.sleep(0)
        await self.operator.close()
        self.assertEqual(await within(waiting), "the end")

    async def test_a_refusal_ends_the_iteration(self):
        with self.assertRaisesRegex(hive_client.HiveError, "AGENT_NOT_FOUND"):
            async with self.operator.follow(agent="unknown"):
                pass
