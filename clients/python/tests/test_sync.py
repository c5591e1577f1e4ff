"""The facade without asyncio, with a real broker."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from hive_client import Fact, HiveError, sync, v1

from .support import LIMIT, Broker

INTERRUPTED = """
import sys
from hive_client import sync
with sync.connect(sys.argv[1]) as hive, hive.mail() as mail:
    print("begun", flush=True)
    try:
        for delivery in mail:
            print(delivery.message.body, flush=True)
    except KeyboardInterrupt:
        hive.send("ada", "interrupted")
        print("interrupted", flush=True)
"""


class Sync(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.broker = Broker(Path(directory.name))
        self.addCleanup(self.broker.end)
        self.broker.start()

    def tearDown(self) -> None:
        names = [thread.name for thread in threading.enumerate()]
        self.assertEqual([name for name in names if name.startswith("hive")], [])

    def test_the_verbs_block_until_their_result(self):
        with (
            sync.connect(self.broker.socket("ada"), program="test") as ada,
            sync.connect(self.broker.socket("bob")) as bob,
        ):
            self.assertTrue(ada.supports("questions"))
            with bob.follow() as facts, bob.mail() as mail:
                sent = ada.send("bob", "hello")
                fact = next(iter(facts))
                self.assertIsInstance(fact, Fact)
                self.assertEqual(fact.event.message_id, sent.message_id)
                for delivery in mail:
                    self.assertEqual((delivery.message.body, delivery.attempt), ("hello", 1))
                    self.assertFalse(delivery.lost.wait(0.01))
                    self.assertEqual(delivery.ack(), v1.DeliveryState.DELIVERY_STATE_ACKED)
                    with self.assertRaisesRegex(HiveError, "FAILED_PRECONDITION"):
                        delivery.nack("again")
                    mail.close()
                self.assertEqual(list(mail), [])
            asked = ada.ask("bob", "Ship?", options=["yes"])
            bob.answer(asked.question.id, choices=["yes"])
            self.assertEqual(list(asked.outcome(timeout=LIMIT).answer.choices), ["yes"])
            request = v1.GetInboxStatusRequest()
            stub = bob.stub(v1.InboxServiceStub)
            self.assertEqual(bob.call(stub.GetInboxStatus, request).leased_count, 0)
            with self.assertRaisesRegex(HiveError, "AGENT_NOT_FOUND"):
                ada.send("bobb", "x")

    def test_a_closed_hive_fails_its_calls(self):
        hive = sync.connect(self.broker.socket("ada"))
        mail = hive.mail()
        hive.close()
        hive.close()
        with self.assertRaisesRegex(HiveError, "CANCELLED: this Hive is closed"):
            hive.info()
        self.assertEqual(list(mail), [])
        with self.assertRaisesRegex(HiveError, "INVALID_ARGUMENT"):
            sync.connect("")

    def test_each_runs_handlers_in_threads(self):
        both = threading.Barrier(2, timeout=LIMIT)
        with (
            sync.connect(self.broker.socket("ada")) as ada,
            sync.connect(self.broker.socket("bob")) as bob,
            bob.mail(window=2) as mail,
        ):
            for body in ("one", "two", "bad"):
                ada.send("bob", body)
            left = []

            def handle(delivery: sync.Delivery) -> None:
                if delivery.message.body == "bad":
                    threading.Thread(target=mail.close).start()
                    left.append(delivery.lost.wait(LIMIT))
                    raise ValueError("it is bad")
                both.wait()

            mail.each(handle)
            self.assertEqual(left, [True])
            status = bob.call(
                bob.stub(v1.InboxServiceStub).GetInboxStatus, v1.GetInboxStatusRequest()
            )
            self.assertEqual((status.ready_count, status.leased_count), (1, 0))

    def test_an_interrupt_ends_a_verb(self):
        program = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, self.broker.socket("bob")],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.assertEqual(program.stdout.readline(), "begun\n")
        with sync.connect(self.broker.socket("ada")) as ada:
            ada.send("bob", "x")
        self.assertEqual(program.stdout.readline(), "x\n")
        program.send_signal(signal.SIGINT)
        out, problems = program.communicate(timeout=LIMIT)
        self.assertEqual((out, problems, program.returncode), ("interrupted\n", "", 0))
