"""A stream of deliveries that outlives its connections.

Each delivery is handed out once. A settlement is sent until its result has come, so none is lost.
The broker's list at the beginning of a connection decides what is still leased. After `close`, or
after the error that ends the iteration, nothing is held and no task is left.
"""

import asyncio
import contextlib
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple, Self

import grpc

from . import v1
from .connection import Connection
from .delivery import Delivery
from .error import HiveError, closed, from_refusal, from_rpc_error, invalid, is_repeatable
from .retry import Backoff

_log = logging.getLogger("hive_client")

_SETTLEMENTS_MAX = 120  # with the longest errors less than the 512 KiB of a request
# The longest time of `close`, in seconds.
_CLOSE = 10.0


class _Settling(NamedTuple):
    delivery: Delivery
    settlement: v1.Settlement
    result: asyncio.Future[v1.DeliveryState]


class Mail:
    """An asynchronous iterator of `Delivery`. Use it with `async with`, or call `close`."""

    def __init__(self, connection: Connection, opening: v1.OpenDeliveries) -> None:
        self._connection = connection
        self._stub = connection.stub(v1.InboxServiceStub)
        self._opening = opening
        self._task: asyncio.Task[None] | None = None  # reads the streams, one after the other
        self._is_open = False  # whether the present stream has listed its leases
        self._closing = False
        self._error: HiveError | None = None
        self._held: dict[str, Delivery] = {}  # by lease token
        self._ready: deque[Delivery] = deque()  # held, and not handed out yet
        self._unsent: deque[_Settling] = deque()
        self._unanswered: deque[_Settling] = deque()  # in the order in which they were sent
        self._handlers: dict[str, asyncio.Task[None]] = {}  # of `each`, by lease token
        self._asked = False  # whether a ping waits for its pong
        self._to_write = asyncio.Event()
        self._to_read = asyncio.Event()  # a delivery is ready, or the iteration has ended

    async def __aenter__(self) -> Self:
        self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        self._start()
        while not self._ready:
            if self._closing:
                raise StopAsyncIteration
            if self._error is not None:
                raise self._error
            self._to_read.clear()
            await self._to_read.wait()
        return self._ready.popleft()

    async def each(self, handler: Callable[[Delivery], Awaitable[object] | object]) -> None:
        """Runs the handler for each delivery, as many at the same time as the window has.

        A return acks the delivery. An exception nacks it with its text, and goes to the log
        `hive_client`. A lost lease cancels the handler, and settles nothing. A handler may settle
        its delivery itself.

        Returns when the mail is closed, after all handlers have ended.

        Raises:
            HiveError: The refusal that ended the stream.
        """
        if not callable(handler):
            raise invalid("handler", handler, "give a function of one delivery")
        running: dict[str, asyncio.Task[None]] = {}
        try:
            async for delivery in self:
                task = asyncio.create_task(self._handle(handler, delivery, running))
                running[delivery.token] = self._handlers[delivery.token] = task
        finally:
            await _end_all(running.values())
            for token in running:  # of tasks that were cancelled before they began
                self._handlers.pop(token, None)

    async def close(self) -> None:
        """Ends the iteration, and releases what is held and not settled, without an attempt.

        Handlers of `each` are cancelled, and settlements under way get their results. It takes at
        most 10 s. Closing twice is fine.
        """
        self._closing = True
        self._ready.clear()
        self._to_read.set()
        if self._task is None:
            return
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE):
                    await _end_all(self._handlers.values())
                    if not self._held and not self._connection.is_ready:
                        self._task.cancel()  # there is nothing to release
                    self._to_write.set()
                    await asyncio.wait({self._task})
        finally:
            self._task.cancel()
        await asyncio.wait({self._task})

    def _start(self) -> None:
        if self._task is None and not self._closing:
            self._task = asyncio.create_task(self._run())

    async def _handle(
        self,
        handler: Callable[[Delivery], Any],
        delivery: Delivery,
        running: dict[str, asyncio.Task[None]],
    ) -> None:
        try:
            problem = None
            try:
                result = handler(delivery)
                if inspect.isawaitable(result):
                    await result
            except (Exception, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    return  # the lease is lost, or the mail is closed
                problem = str(error) or type(error).__name__
                _log.warning("the handler of message %d failed", delivery.message.id, exc_info=True)
            if delivery.is_settled:
                return
            # A refusal says that the lease is lost, or it is the error that ends the iteration.
            with contextlib.suppress(HiveError):
                await (delivery.ack() if problem is None else delivery.nack(problem))
        finally:
            # Not by callbacks of the task: each would cost a turn of the loop.
            for tasks in (running, self._handlers):
                tasks.pop(delivery.token, None)

    def _settle(
        self, delivery: Delivery, settlement: v1.Settlement
    ) -> asyncio.Future[v1.DeliveryState]:
        if self._closing:
            end = f"the mail was closed before message {delivery.message.id} was settled"
            raise HiveError("CANCELLED", f"{end}: the message is delivered again")
        if delivery.lost.is_set():
            end = f"the lease of the delivery of message {delivery.message.id} is lost"
            advice = "stop, and wait for its next delivery"
            raise HiveError("FAILED_PRECONDITION", f"{end}: {advice}", reason="LEASE_LOST")
        delivery.is_settled = True
        settling = _Settling(delivery, settlement, asyncio.get_running_loop().create_future())
        self._unsent.append(settling)
        self._to_write.set()
        return settling.result

    async def _run(self) -> None:
        backoff = Backoff()
        end = closed("the mail")
        try:
            while True:
                try:
                    await self._read_stream(backoff)
                    error = HiveError("UNAVAILABLE", "the broker has ended the stream")
                except grpc.aio.AioRpcError as rpc_error:
                    error = from_rpc_error(rpc_error)
                if self._closing and not self._held:
                    break
                if not is_repeatable(error) and error.reason != "STREAM_SILENT":
                    end = error
                    break
                await asyncio.sleep(backoff.pause(error))
        except Exception as fault:
            end = HiveError("INTERNAL", f"the stream has a fault, open another: {fault!r}")
            end.__cause__ = fault
        finally:
            self._end(end)

    async def _read_stream(self, backoff: Backoff) -> None:
        """Reads one stream to its end."""
        await self._connection.handshake()
        call = self._connection.start(self._stub.StreamDeliveries)
        writer = asyncio.create_task(self._write(call))
        listed: set[str] = set()
        try:
            async for step in call:
                match step.WhichOneof("step"):
                    case "opened":
                        self._open(step.opened, listed)
                        if self._is_open:
                            backoff.reset()
                    case "leased":
                        self._take(step.leased.deliveries)
                    case "settled":
                        self._answer(step.settled)
                    case "ping":
                        self._asked = True
                        self._to_write.set()
        finally:
            self._is_open = self._asked = False
            call.cancel()
            writer.cancel()
            await asyncio.wait({writer})
            self._unsent.extendleft(reversed(self._unanswered))
            self._unanswered.clear()
        if not writer.cancelled() and writer.result():
            self._lose(self._held.values())  # they were released

    async def _write(self, call: Any) -> bool:
        """Writes to one stream, and returns whether it has closed our side."""
        # A write fails only when the stream has ended, and its reader gets the reason.
        with contextlib.suppress(grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError):
            await call.write(v1.StreamDeliveriesRequest(open=self._opening))
            while not (self._closing and self._is_open and not (self._unsent or self._unanswered)):
                await self._to_write.wait()
                self._to_write.clear()
                if self._asked:
                    self._asked = False
                    await call.write(v1.StreamDeliveriesRequest(pong=v1.Pong()))
                # What is made while others are on their way goes together in the next step.
                if self._unsent and not self._unanswered and self._is_open:
                    await call.write(self._next_settlements())
            await call.done_writing()
            return True
        return False

    def _next_settlements(self) -> v1.StreamDeliveriesRequest:
        count = min(len(self._unsent), _SETTLEMENTS_MAX)
        batch = [self._unsent.popleft() for _ in range(count)]
        self._unanswered.extend(batch)
        settle = v1.SettleDeliveriesRequest(settlements=[one.settlement for one in batch])
        return v1.StreamDeliveriesRequest(settle=settle)

    def _open(self, opened: v1.DeliveriesOpened, listed: set[str]) -> None:
        listed.update(lease.lease_token for lease in opened.deliveries)
        self._take(opened.deliveries)
        if opened.complete:
            # The settlement of a lease that has ended may be committed: its result decides.
            held = [delivery for delivery in self._held.values() if not delivery.is_settled]
            self._lose(delivery for delivery in held if delivery.token not in listed)
            self._is_open = True
            self._to_write.set()

    def _take(self, leases: Iterable[v1.LeasedDelivery]) -> None:
        for lease in leases:
            if lease.lease_token not in self._held:
                delivery = Delivery(lease, self._settle)
                self._held[delivery.token] = delivery
                if not self._closing:
                    self._ready.append(delivery)
                    self._to_read.set()

    def _answer(self, settled: v1.SettleDeliveriesResponse) -> None:
        for answer in settled.results:
            settling = self._unanswered.popleft()
            self._held.pop(settling.delivery.token, None)
            refused = answer.HasField("refusal")
            if refused:
                settling.delivery.lost.set()
            if settling.result.done():
                pass  # its caller was cancelled
            elif refused:
                settling.result.set_exception(from_refusal(answer.refusal))
            else:
                settling.result.set_result(answer.state)
        self._to_write.set()

    def _lose(self, deliveries: Iterable[Delivery]) -> None:
        for delivery in list(deliveries):
            del self._held[delivery.token]
            delivery.lost.set()
            if delivery in self._ready:
                self._ready.remove(delivery)
            if delivery.token in self._handlers:
                self._handlers[delivery.token].cancel()

    def _end(self, error: HiveError) -> None:
        self._error = error
        for settling in self._unanswered + self._unsent:
            if not settling.result.done():
                settling.result.set_exception(error)
        self._lose(self._held.values())
        self._to_read.set()


async def _end_all(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancels the tasks once, and waits for all of them but the present one."""
    others = [task for task in tasks if task is not asyncio.current_task()]
    for task in others:
        if not task.cancelling():
            task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
