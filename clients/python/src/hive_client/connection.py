"""The channel to the broker: the handshake of each connection, and the one place that repeats.

All calls of a Hive pass here. A call waits for the handshake of its connection, a request is
repeated with the same bytes, and after `close` no work of the connection is left.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from . import address, v1
from .error import HiveError, closed, from_rpc_error, is_repeatable
from .retry import Backoff, attempt_timeout, with_request_id

T = TypeVar("T")

_HANDSHAKE = 10.0
_REPLY_BYTES_MAX = 16 * 1024 * 1024
_OPTIONS = [
    ("grpc.default_authority", "localhost"),  # grpcio would send the path, which is not valid
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.max_receive_message_length", _REPLY_BYTES_MAX),
    ("grpc.enable_http_proxy", 0),
    # Each Hive has a connection of its own, whose handshake names its program.
    ("grpc.use_local_subchannel_pool", 1),
]


class Connection:
    """A channel to one socket. It is made in a running event loop, and belongs to it."""

    def __init__(
        self, path: str, client: v1.GetServerInfoRequest, metadata: list[tuple[str, str]]
    ) -> None:
        asyncio.get_running_loop()  # fails outside of a coroutine, before gRPC makes a loop
        self.path = path
        self.metadata = metadata
        self.channel = grpc.aio.insecure_channel(address.target(path), _OPTIONS)
        self.is_closed = False
        self._client = client
        self._stubs: dict[Any, Any] = {}
        self._handshake: asyncio.Task[v1.GetServerInfoResponse] | None = None
        self._scopes: set[asyncio.Timeout] = set()

    @property
    def is_ready(self) -> bool:
        """Whether the channel has a connection now."""
        return self.channel.get_state() is grpc.ChannelConnectivity.READY

    async def handshake(self) -> v1.GetServerInfoResponse:
        """Returns the answer of the present connection; all that wait share one call.

        gRPC connects again only for a call. So a channel that is ready has the connection of the
        last handshake, unless that breaks between this check and the send of the call.
        """
        last = self._handshake
        if last is None or (last.done() and (_failed(last) or not self.is_ready)):
            last = self._handshake = asyncio.create_task(self._shake_hands())
            last.add_done_callback(_failed)  # so that a failure counts as seen
        return last.result() if last.done() else await asyncio.shield(last)

    async def call(self, method: Any, request: Message, timeout: float) -> Any:
        """Repeats a request until it is answered, refused for good, or its budget ends."""
        request = with_request_id(request)
        longest = attempt_timeout(request)

        def attempt(left: float) -> Awaitable[Any]:
            return self.start(method, request, timeout=min(left, longest))

        return await self.repeat(attempt, timeout, type(request).__name__)

    async def repeat(
        self, attempt: Callable[[float], Awaitable[T]], timeout: float, what: str
    ) -> T:
        """Makes attempts at one piece of work; an attempt gets the seconds that are left."""
        now = asyncio.get_running_loop().time
        end = now() + timeout
        backoff, refusal = Backoff(), None
        try:
            async with self.scope(timeout):
                while True:
                    try:
                        await self.handshake()
                        return await attempt(end - now())
                    except grpc.aio.AioRpcError as rpc_error:
                        error = from_rpc_error(rpc_error)
                    if not is_repeatable(error):
                        raise error
                    refusal = error if error.reason else refusal
                    pause = backoff.pause(error)
                    if now() + pause >= end:
                        if error.code == "DEADLINE_EXCEEDED" and not error.reason:
                            break
                        raise error
                    await asyncio.sleep(pause)
        except TimeoutError:
            pass
        raise refusal or HiveError(
            "DEADLINE_EXCEEDED",
            f"{what} has no answer from {self.path} after {timeout:g} s{_cause(self.path)}: "
            "check that hived runs and that this is its socket, or give a longer timeout",
        )

    def stub(self, stub: Callable[[grpc.aio.Channel], T]) -> T:
        """Returns the stub of a service; each is made once."""
        if stub not in self._stubs:
            self._stubs[stub] = stub(self.channel)
        made: T = self._stubs[stub]
        return made

    def start(self, method: Any, *request: Message, timeout: float | None = None) -> Any:
        """Starts one call, which waits for the connection."""
        return method(*request, timeout=timeout, metadata=self.metadata, wait_for_ready=True)

    async def watch(self, method: Any, request: Callable[[], Message]) -> AsyncGenerator[Any, None]:
        """Yields the steps of a watch; after a break it begins with the request of that moment."""
        backoff = Backoff()
        while True:
            call = None
            try:
                await self.handshake()
                call = self.start(method, request())
                async for step in call:
                    backoff.reset()
                    yield step
                error = HiveError("UNAVAILABLE", "the broker has ended the watch")
            except grpc.aio.AioRpcError as rpc_error:
                error = from_rpc_error(rpc_error)
            finally:
                if call is not None:
                    call.cancel()
            if not is_repeatable(error):
                raise error
            await asyncio.sleep(backoff.pause(error))

    @contextlib.asynccontextmanager
    async def scope(self, timeout: float | None = None) -> AsyncIterator[asyncio.Timeout]:
        """Bounds a piece of work: it ends with TimeoutError, or with the connection."""
        if self.is_closed:
            raise closed("this Hive")
        scope = asyncio.timeout(timeout)
        self._scopes.add(scope)
        try:
            async with scope:
                yield scope
        except TimeoutError:
            if self.is_closed:
                raise closed("this Hive") from None
            raise
        finally:
            self._scopes.discard(scope)

    async def close(self) -> None:
        """Ends all work, and the channel."""
        if self.is_closed:
            return
        self.is_closed = True
        for scope in self._scopes:
            end_scope(scope)
        # Each scope ends its work before the channel does: it knows why.
        await asyncio.sleep(0)
        if self._handshake is not None:
            self._handshake.cancel()
            await asyncio.wait({self._handshake})
        await self.channel.close()

    async def _shake_hands(self) -> v1.GetServerInfoResponse:
        method = self.stub(v1.ServerInfoServiceStub).GetServerInfo
        info: v1.GetServerInfoResponse = await self.start(method, self._client, timeout=_HANDSHAKE)
        return info


def end_scope(scope: asyncio.Timeout) -> None:
    """Ends the work of a scope now."""
    if not scope.expired():
        scope.reschedule(asyncio.get_running_loop().time())


def _cause(path: str) -> str:
    """Returns why the socket cannot be opened, which gRPC does not tell; empty if it can."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except OSError as error:
            return f" ({error.strerror})"
    return ""


def _failed(task: asyncio.Task[Any]) -> bool:
    return task.cancelled() or task.exception() is not None
