"""The one place that repeats, and the handshake, against a broker with set answers."""

import asyncio
import time
from datetime import timedelta

from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from grpc import StatusCode

import hive_client
from hive_client import v1

from .fake import Fake
from .support import HiveTest, within

RECEIPT = v1.SendMessageResponse(message_id=7)


def refusal(code: StatusCode, reason: str, delay: float | None = None):
    details = [ErrorInfo(domain="hive", reason=reason)]
    if delay is not None:
        details.append(RetryInfo(retry_delay=timedelta(seconds=delay)))
    return (code, *details)


class Calls(HiveTest):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.fake = Fake(self.directory / "fake.sock")
        await self.fake.start()
        self.hive = self.connect(self.fake.path, process_token="secret", traceparent="")

    async def test_the_identical_request_is_repeated_until_it_is_answered(self):
        self.fake.answers = [
            refusal(StatusCode.UNAVAILABLE, "DRAINING"),
            (StatusCode.UNAVAILABLE,),
            (StatusCode.INTERNAL,),
            refusal(StatusCode.RESOURCE_EXHAUSTED, "CALL_LIMIT", 0.01),
            RECEIPT,
        ]
        self.assertEqual(await within(self.hive.send("bob", "x")), RECEIPT)
        self.assertEqual(len(self.fake.requests), 5)
        self.assertEqual(len({request.SerializeToString() for request in self.fake.requests}), 1)
        self.assertTrue(self.fake.requests[0].request_id)

    async def test_other_refusals_end_the_call_at_once(self):
        for code, reason in (
            (StatusCode.NOT_FOUND, "AGENT_NOT_FOUND"),
            (StatusCode.RESOURCE_EXHAUSTED, "RATE_LIMITED"),
            (StatusCode.UNAVAILABLE, "A_NEWER_REASON"),
            (StatusCode.UNIMPLEMENTED, ""),
        ):
            self.fake.requests.clear()
            self.fake.answers = [refusal(code, reason) if reason else (code,)]
            await self.refused(self.hive.send("bob", "x"), code.name, reason)
            self.assertEqual(len(self.fake.requests), 1)

    async def test_a_budget_ends_with_the_last_refusal(self):
        self.fake.answers = [refusal(StatusCode.UNAVAILABLE, "DRAINING", 5.0)]
        begun = time.monotonic()
        error = await self.refused(self.hive.send("bob", "x", timeout=3), "UNAVAILABLE", "DRAINING")
        self.assertLess(time.monotonic() - begun, 2)
        self.assertEqual(error.retry_after, 5.0)
        # The second attempt gets no answer: the refusal before it says more.
        self.fake.answers = [refusal(StatusCode.UNAVAILABLE, "STARTING")]
        await self.refused(self.hive.send("bob", "x", timeout=0.5), "UNAVAILABLE", "STARTING")

    async def test_a_call_without_an_answer_ends_with_its_budget(self):
        error = await self.refused(self.hive.send("bob", "x", timeout=0.2), "DEADLINE_EXCEEDED")
        self.assertIn(self.fake.path, error.message)
        await within(self.fake.cancelled.wait())

    async def test_a_cancelled_task_cancels_its_call(self):
        task = asyncio.create_task(self.hive.send("bob", "x"))
        await within(self.fake.arrived.wait())
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        await within(self.fake.cancelled.wait())
        self.assertEqual(len(self.fake.requests), 1)

    async def test_close_ends_calls_under_way_and_pauses(self):
        task = asyncio.create_task(self.hive.send("bob", "x"))
        await within(self.fake.arrived.wait())
        other = hive_client.connect(str(self.directory / "none.sock"))
        waiting = asyncio.create_task(other.info())
        await asyncio.sleep(0)
        await within(other.close())
        await self.refused(waiting, "CANCELLED")
        await within(self.hive.close())
        await within(self.hive.close())
        error = await self.refused(task, "CANCELLED")
        self.assertIn("closed", error.message)
        await self.refused(self.hive.send("bob", "x"), "CANCELLED")
        for stream in (self.hive.mail, self.hive.follow):
            with self.assertRaisesRegex(hive_client.HiveError, "closed"):
                stream()

    async def test_one_handshake_is_before_the_calls_of_each_connection(self):
        self.fake.handshake_answers = [refusal(StatusCode.UNAVAILABLE, "STARTING")]
        self.fake.answers = [RECEIPT] * 40
        await within(asyncio.gather(*(self.hive.send("bob", "x") for _ in range(20))))
        self.assertEqual(len(self.fake.handshakes), 2)  # the first one was refused
        self.assertEqual(self.fake.handshakes[0].client_name, "hive-client-python")
        self.assertEqual(self.fake.handshakes[0].contract_revision, 1)
        self.assertTrue(await self.hive.supports("search"))
        self.assertFalse(await self.hive.supports("questions"))
        self.assertFalse(await self.hive.supports("of a newer broker"))
        self.assertEqual((await self.hive.info()).version, "fake")
        self.assertEqual(len(self.fake.handshakes), 2)
        await self.fake.stop()
        await self.fake.start()
        await within(asyncio.gather(*(self.hive.send("bob", "x") for _ in range(20))))
        self.assertEqual(len(self.fake.handshakes), 3)

    async def test_a_handshake_that_is_refused_for_good_fails_its_call(self):
        self.fake.handshake_answers = [refusal(StatusCode.PERMISSION_DENIED, "PEER_NOT_TRUSTED")]
        await self.refused(self.hive.send("bob", "x"), "PERMISSION_DENIED", "PEER_NOT_TRUSTED")
        self.assertEqual(self.fake.requests, [])

    async def test_calls_carry_the_metadata_that_is_set(self):
        self.fake.answers = [RECEIPT]
        await within(self.hive.send("bob", "x"))
        self.assertEqual(self.fake.metadata[0]["hive-process-token"], "secret")
        self.assertNotIn("traceparent", self.fake.metadata[0])
        with self.assertRaises(hive_client.HiveError) as caught:
            hive_client.connect(self.fake.path, process_token="geheim\n")
        self.assertNotIn("geheim", str(caught.exception))

    async def test_a_path_with_odd_characters_is_a_path(self):
        fake = Fake(self.directory / "a b%20#?ä.sock")
        # The server decodes its address as well.
        plain, fake.path = fake.path, fake.path.replace("%", "%25").replace("#", "%23")
        fake.path = fake.path.replace("?", "%3F").replace(" ", "%20").replace("ä", "%C3%A4")
        await fake.start()
        async with hive_client.connect(plain, timeout=5) as hive:
            self.assertEqual((await hive.info()).version, "fake")
        await fake.stop()
