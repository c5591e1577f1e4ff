"""What the tests share: a real hived in a temporary directory, and checks that nothing is left.

HIVE_TEST_BIN_DIR names the directory of hived. Waits are on signals: the broker reports that it is
ready, and every wait has a limit.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import hive_client
from hive_client import v1

from .fake import Fake

LIMIT = 5.0
CONFIG = "[agents.ada]\n[agents.bob]\n"


class Broker:
    """A hived that can be killed and started again on the same database."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.process: subprocess.Popen[bytes] | None = None
        (directory / "hive.toml").write_text(CONFIG)

    def socket(self, agent: str) -> str:
        return str(self.directory / "run" / "agents" / agent / "hive.sock")

    @property
    def operator(self) -> str:
        return str(self.directory / "run" / "hived.sock")

    def start(self) -> None:
        """Starts hived, and returns when it is ready."""
        notify = self.directory / "notify"
        notify.unlink(missing_ok=True)
        with contextlib.ExitStack() as stack:
            ready = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            ready.settimeout(LIMIT)
            ready.bind(str(notify))
            log = stack.enter_context((self.directory / "log").open("ab"))
            self.process = subprocess.Popen(
                [
                    Path(os.environ["HIVE_TEST_BIN_DIR"], "hived").absolute(),
                    *("--config", "hive.toml", "--state-dir", "state", "--runtime-dir", "run"),
                ],
                cwd=self.directory,
                env={"NOTIFY_SOCKET": str(notify), "PATH": os.environ["PATH"]},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
            while not ready.recv(4096).startswith(b"READY=1"):
                pass

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Ends hived, and returns when it has ended."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(LIMIT)
            self.process = None


class HiveTest(unittest.IsolatedAsyncioTestCase):
    """A test with a broker. It fails if the kit leaves a task, or an exception in the loop."""

    async def asyncSetUp(self) -> None:
        self.faults: list[dict[str, object]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.faults.append(context))
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.broker = Broker(self.directory)
        self.addCleanup(self.broker.end)
        self.hives: list[hive_client.Hive] = []
        self.fake: Fake | None = None

    async def asyncTearDown(self) -> None:
        for hive in self.hives:
            await within(hive.close())
        if self.fake is not None:
            await within(self.fake.stop())
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left:
            # gRPC ends the tasks of a cancelled call by itself, a moment after the call.
            _, left = await asyncio.wait(left, timeout=LIMIT)
        self.assertEqual(left, set(), "tasks are left")
        self.assertEqual(self.faults, [], "the loop got exceptions")

    def connect(self, path: str, **options: Any) -> hive_client.Hive:
        """Returns a connection that the end of the test closes."""
        self.hives.append(hive_client.connect(path, **options))
        return self.hives[-1]

    async def deliveries(self, agent: str) -> dict[str, v1.Delivery]:
        """Returns all deliveries of an agent, by the bodies of their messages."""
        async with hive_client.connect(self.broker.operator) as operator:
            stub = operator.stub(v1.InboxServiceStub)
            states = [value for value in v1.DeliveryState.values() if value]
            request = v1.ListDeliveriesRequest(agent=agent, states=states, page_size=500)
            page = await operator.call(stub.ListDeliveries, request)
            return {delivery.message.body: delivery for delivery in page.deliveries}

    async def refused(self, work, code: str, reason: str = "") -> hive_client.HiveError:
        """Awaits the work, which fails with this code and reason."""
        with self.assertRaises(hive_client.HiveError) as caught:
            await within(work)
        self.assertEqual((caught.exception.code, caught.exception.reason), (code, reason))
        return caught.exception


def sockets() -> int:
    """Returns the number of sockets that this process has open."""
    paths = Path("/proc/self/fd").iterdir()
    return sum(str(os.readlink(path)).startswith("socket:") for path in paths if path.is_symlink())


async def within(work):
    """Awaits the work for at most the limit of a test."""
    async with asyncio.timeout(LIMIT):
        return await work
