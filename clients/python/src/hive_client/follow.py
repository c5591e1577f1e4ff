"""Following the log of events: nothing twice, nothing missed, over breaks and restarts."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple, Self

from . import v1
from .connection import Connection, end_scope
from .error import closed, invalid


class Position(NamedTuple):
    """A position in the log. Store it, and pass it to `Hive.follow` as `after`."""

    log_id: str
    sequence: int


class Fact(NamedTuple):
    """A committed fact."""

    event: v1.Event
    position: Position


class Gap(NamedTuple):
    """Events before the next ones were pruned: read the state that you need again."""

    position: Position


class LogChanged(NamedTuple):
    """The operator restored a backup, so the log is another one: read the state again."""

    position: Position


class Follow:
    """An asynchronous iterator of `Fact`, `Gap` and `LogChanged`.

    `async with` waits until the log is followed: each event that is committed after it is yielded.
    A cancelled wait for the next one loses nothing. A refusal ends the iteration with its
    `HiveError`.
    """

    def __init__(self, connection: Connection, after: Position | None, agent: str) -> None:
        if after is not None and not (isinstance(after, tuple) and len(after) == 2):
            raise invalid("after", after, "give a Position")
        self._connection = connection
        self._stub = connection.stub(v1.EventServiceStub)
        self._agent = agent
        self._position = after
        self._steps: AsyncGenerator[Any, None] | None = None
        self._ready: deque[Fact | Gap | LogChanged] = deque()
        self._scope: asyncio.Timeout | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        try:
            while self._position is None:
                await self._read()
        except TimeoutError:
            raise closed("this Follow") from None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Fact | Gap | LogChanged:
        while not self._ready:
            if self._closed:
                raise StopAsyncIteration
            try:
                await self._read()
            except TimeoutError:
                if not self._closed:
                    raise
        return self._ready.popleft()

    async def close(self) -> None:
        """Ends the iteration. Closing twice is fine."""
        self._closed = True
        self._ready.clear()
        if self._scope is not None:
            end_scope(self._scope)
        elif self._steps is not None:
            await self._steps.aclose()

    async def _read(self) -> None:
        """Reads one step. If it is cancelled, the next one begins after the last position."""
        async with self._connection.scope() as self._scope:
            if self._steps is None:
                self._steps = self._connection.watch(self._stub.WatchEvents, self._request)
            try:
                self._take(await anext(self._steps))
            except BaseException:
                self._steps = None
                raise
            finally:
                self._scope = None

    def _request(self) -> v1.WatchEventsRequest:
        request = v1.WatchEventsRequest(agent=self._agent)
        if self._position is not None:
            request.log_id, request.after_sequence = self._position
        return request

    def _take(self, step: Any) -> None:
        match step.WhichOneof("step"):
            case "snapshot":
                self._begin(step.snapshot)
            case "batch":
                log_id = self._position.log_id if self._position else ""
                for event in step.batch.events:
                    self._ready.append(Fact(event, Position(log_id, event.sequence)))
                self._position = Position(log_id, step.batch.sequence)
            case "progress":
                self._position = Position(step.progress.log_id, step.progress.sequence)

    def _begin(self, snapshot: v1.EventSnapshot) -> None:
        newest = Position(snapshot.log_id, snapshot.last_sequence)
        if snapshot.log_changed:
            self._position = newest
            self._ready.append(LogChanged(newest))
        elif snapshot.gap:
            # What was pruned is behind this position; a resume from it has no gap.
            self._position = Position(snapshot.log_id, snapshot.first_sequence - 1)
            self._ready.append(Gap(self._position))
        elif self._position is None:
            self._position = newest
