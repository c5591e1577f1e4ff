"""A connection to a hive: `connect`, and the verbs.

Each verb is one request through `Hive.call`, the one place that repeats. Generated messages are
used as they are.
"""

import asyncio
import os
import weakref
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypeVar

import grpc
from google.protobuf.message import Message

from . import v1
from .address import socket_path
from .asked import Asked
from .connection import Connection
from .error import HiveError, closed, invalid
from .follow import Follow, Position
from .mail import Mail
from .recipient import recipient
from .retry import new_id
from .version import __version__

S = TypeVar("S")
K = TypeVar("K", Mail, Follow)

_PROGRAM = "hive-client-python"
_CONTRACT_REVISION = 1


def connect(
    path: str | os.PathLike[str] | None = None,
    *,
    program: str | None = None,
    version: str | None = None,
    timeout: float = 30.0,
    process_token: str | None = None,
    traceparent: str | None = None,
) -> "Hive":
    """Returns a connection to the hive of this socket. The first call waits for the broker.

    Call it in a coroutine, and use the result with `async with`, or call `close`.

    Args:
        path: Path of the socket, or its `unix:` URI. Default: HIVE_SOCKET of the environment, else
            `/run/hive/hive.sock`.
        program: Name of the program for the broker's log. Default: that of the kit.
        version: Version of the program. Default: that of the kit, if `program` is not given.
        timeout: Seconds of a call with all its repeats, unless the call has its own.
        process_token: Token of the process. Default: HIVE_PROCESS_TOKEN of the environment. Empty:
            none.
        traceparent: W3C trace context of the calls. Default: TRACEPARENT of the environment. Empty:
            none.

    Raises:
        HiveError: INVALID_ARGUMENT if the path, the token or the trace context is not valid.
        RuntimeError: No event loop is running.
    """
    if version is None:
        version = __version__ if program is None else ""
    client = v1.GetServerInfoRequest(
        client_name=program or _PROGRAM,
        client_version=version,
        contract_revision=_CONTRACT_REVISION,
    )
    metadata = [
        *_metadata("hive-process-token", process_token, "HIVE_PROCESS_TOKEN"),
        *_metadata("traceparent", traceparent, "TRACEPARENT"),
    ]
    return Hive(Connection(socket_path(path), client, metadata), _seconds(timeout))


class Hive:
    """A connection to a hive. `connect` makes it.

    Every verb raises `HiveError` if the broker refuses it, if its budget ends, or if the Hive is
    closed. Verbs with a `timeout` repeat their request within that many seconds (default: that of
    `connect`). A `request_id` that is given makes repeats over the end of a program safe.
    Cancelling a task that awaits a verb cancels the call.
    """

    def __init__(self, connection: Connection, timeout: float) -> None:
        self._connection = connection
        self._timeout = timeout
        self._streams: weakref.WeakSet[Mail | Follow] = weakref.WeakSet()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all streams and the connection. Closing twice is fine."""
        try:
            await asyncio.gather(*(stream.close() for stream in list(self._streams)))
        finally:
            await self._connection.close()

    async def info(self, timeout: float | None = None) -> v1.GetServerInfoResponse:
        """Returns versions, capabilities and limits of the broker of the present connection."""
        return await self._connection.repeat(
            lambda _: self._connection.handshake(), self._budget(timeout), "GetServerInfo"
        )

    async def supports(self, capability: str, timeout: float | None = None) -> bool:
        """Returns whether the broker has this capability, a field of `Capabilities`."""
        capabilities = (await self.info(timeout)).capabilities
        known = capability in capabilities.DESCRIPTOR.fields_by_name
        return known and getattr(capabilities, capability)

    def stub(self, stub: Callable[[grpc.aio.Channel], S]) -> S:
        """Returns the stub of a service on this connection, for `call`."""
        return self._connection.stub(stub)

    async def call(self, method: Any, request: Message, timeout: float | None = None) -> Any:
        """Calls a unary RPC, and repeats the identical request as the contract allows.

        Args:
            method: Method of a stub, such as `hive.stub(InboxServiceStub).ListDeliveries`.
            request: The request. It is not changed; an empty `request_id` is set in a copy.
            timeout: Seconds for the call with all its repeats.
        """
        return await self._connection.call(method, request, self._budget(timeout))

    async def send(
        self,
        to: str | v1.Recipient,
        body: str,
        *,
        in_reply_to: int = 0,
        request_id: str = "",
        timeout: float | None = None,
    ) -> v1.SendMessageResponse:
        """Sends a message, and returns its receipt: the message is on disk."""
        request = v1.SendMessageRequest(
            to=recipient(to), body=body, in_reply_to=in_reply_to, request_id=request_id
        )
        return await self.call(self.stub(v1.MessageServiceStub).SendMessage, request, timeout)

    async def ask(
        self,
        to: str | v1.Recipient,
        text: str,
        *,
        options: Iterable[str] = (),
        multi: bool = False,
        ttl: float | timedelta | None = None,
        request_id: str = "",
        timeout: float | None = None,
    ) -> Asked:
        """Asks a question, and returns when it is on disk. `Asked.outcome` waits for its end.

        Args:
            to: Agent, OPERATOR or PARENT.
            text: The question.
            options: Answers to offer.
            multi: Whether several options may be chosen.
            ttl: Seconds until the question expires; None: never.
            request_id: Idempotency key; empty: a new one.
            timeout: Seconds for the call with all its repeats.
        """
        if isinstance(options, str):
            raise invalid("options", options, "give a list of texts")
        request = v1.AskQuestionRequest(
            to=recipient(to),
            text=text,
            options=options,
            multi=multi,
            ttl=None if ttl is None else _timedelta(ttl),
            request_id=request_id,
        )
        method = self.stub(v1.QuestionServiceStub).AskQuestion
        return Asked(self._connection, await self.call(method, request, timeout))

    async def answer(
        self,
        question_id: int,
        text: str = "",
        *,
        choices: Iterable[str] = (),
        request_id: str = "",
        timeout: float | None = None,
    ) -> v1.Question:
        """Answers a question with a text, with choices among its options, or with both."""
        request = v1.AnswerQuestionRequest(
            question_id=question_id, text=text, choices=choices, request_id=request_id
        )
        method = self.stub(v1.QuestionServiceStub).AnswerQuestion
        return (await self.call(method, request, timeout)).question

    async def remind(
        self,
        body: str,
        when: float | timedelta | datetime,
        *,
        request_id: str = "",
        timeout: float | None = None,
    ) -> v1.Reminder:
        """Sets a reminder for the agent itself.

        Args:
            body: Text of the reminder.
            when: Seconds from now, or the time. A time without a zone is local.
            request_id: Idempotency key; empty: a new one.
            timeout: Seconds for the call with all its repeats.
        """
        request = v1.CreateReminderRequest(body=body, request_id=request_id)
        if isinstance(when, datetime):
            request.due_time.FromDatetime(when.astimezone(UTC))
        else:
            request.delay.FromTimedelta(_timedelta(when))
        method = self.stub(v1.ReminderServiceStub).CreateReminder
        return (await self.call(method, request, timeout)).reminder

    async def wake(
        self,
        label: str,
        body: str,
        *,
        coalescing_key: str = "",
        request_id: str = "",
        timeout: float | None = None,
    ) -> v1.WakeResponse:
        """Sends the agent of this socket a message of a co-process, whose name is `label`."""
        request = v1.WakeRequest(
            label=label, body=body, coalescing_key=coalescing_key, request_id=request_id
        )
        return await self.call(self.stub(v1.WakeServiceStub).Wake, request, timeout)

    async def publish(
        self,
        label: str,
        entries: Iterable[v1.PublishedLooseEnd],
        *,
        request_id: str = "",
        timeout: float | None = None,
    ) -> v1.ReplaceLooseEndsResponse:
        """Replaces the loose ends that the co-process `label` has published."""
        request = v1.ReplaceLooseEndsRequest(label=label, loose_ends=entries, request_id=request_id)
        return await self.call(self.stub(v1.LooseEndServiceStub).ReplaceLooseEnds, request, timeout)

    def follow(self, after: Position | None = None, agent: str = "") -> Follow:
        """Returns the facts after a position of the log; without one from the next event on.

        Use it with `async with`: it waits until the log is followed.

        Args:
            after: Position of an earlier fact.
            agent: Only events of this agent; empty: all that the caller may see.
        """
        return self._opened(Follow(self._connection, after, agent))

    def mail(
        self,
        window: int = 8,
        *,
        window_bytes: int = 0,
        orphan_grace: float | timedelta | None = None,
        stream_id: str = "",
    ) -> Mail:
        """Returns a stream of the agent's deliveries. Use it with `async with`.

        Args:
            window: Deliveries that may be out at once, at most 256.
            window_bytes: Bytes of bodies that may be out at once; 0: 3 MiB.
            orphan_grace: Seconds that leases outlive a broken connection; None: 30.
            stream_id: Name of the stream; a newer stream of this name replaces it. Empty: a new
                one.
        """
        opening = v1.OpenDeliveries(
            stream_id=stream_id or new_id(),
            window=v1.DeliveryWindow(deliveries=window, bytes=window_bytes),
            orphan_grace=None if orphan_grace is None else _timedelta(orphan_grace),
        )
        return self._opened(Mail(self._connection, opening))

    def _opened(self, stream: K) -> K:
        if self._connection.is_closed:
            raise closed("this Hive")
        self._streams.add(stream)
        return stream

    def _budget(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else _seconds(timeout)


def _seconds(timeout: float) -> float:
    if not isinstance(timeout, int | float) or not timeout > 0:
        raise invalid("timeout", timeout, "give a number of seconds above 0")
    return timeout


def _metadata(key: str, given: str | None, variable: str) -> list[tuple[str, str]]:
    value = os.environ.get(variable, "") if given is None else given
    if not (value.isascii() and value.isprintable()):
        # The value may be a secret, so the error does not repeat it.
        problem = f"the metadata {key} is not printable ASCII: correct it, or unset {variable}"
        raise HiveError("INVALID_ARGUMENT", problem)
    return [(key, value)] if value else []


def _timedelta(span: float | timedelta) -> timedelta:
    return span if isinstance(span, timedelta) else timedelta(seconds=span)
