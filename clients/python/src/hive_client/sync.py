"""The same nouns and verbs without asyncio: each verb blocks until its result is there.

One thread with an event loop serves all Hives of this module; it ends with the last of them. An
interrupt (KeyboardInterrupt) of a verb cancels its call. The objects may be used by many threads.
"""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from . import asked, delivery, follow, hive, mail, v1
from .error import closed, invalid
from .follow import Fact, Gap, LogChanged

A = TypeVar("A")
B = TypeVar("B")
P = ParamSpec("P")
R = TypeVar("R")

_WINDOW_MAX = 256


class _Thread:
    """A thread with an event loop, for as long as it has users.

    The loop is shared, because gRPC serves one loop of a process best.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._thread = threading.Thread()
        self._unused = asyncio.Event()
        self.loop: asyncio.AbstractEventLoop | None = None  # None without users

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Runs the work on the loop, and returns its result. An interrupt cancels the work."""
        with self._lock:
            if self.loop is None:
                work.close()
                raise closed("this Hive")
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        finally:
            future.cancel()  # does nothing if it is done

    def acquire(self) -> None:
        """Adds a user."""
        with self._lock:
            if self.loop is None:
                loop, self._unused = asyncio.new_event_loop(), asyncio.Event()
                serve = functools.partial(_serve, loop, self._unused)
                self._thread = threading.Thread(target=serve, name="hive-client", daemon=True)
                self._thread.start()
                self.loop = loop
            self._users += 1

    def release(self) -> None:
        """Removes a user."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self.loop is not None:
                self.loop.call_soon_threadsafe(self._unused.set)
                self.loop = None
                self._thread.join()


def _serve(loop: asyncio.AbstractEventLoop, unused: asyncio.Event) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(unused.wait())


_thread = _Thread()


class _Facade(Generic[A]):
    """An object of the loop, for other threads."""

    def __init__(self, inner: A) -> None:
        self._inner = inner


class _Closing(_Facade[A]):
    """A facade that `with` closes."""

    close: Callable[..., None]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _blocking(
    verb: Callable[Concatenate[A, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[_Facade[A], P], R]:
    @functools.wraps(verb)
    def method(self: _Facade[A], *args: P.args, **kwargs: P.kwargs) -> R:
        return _thread.run(verb(self._inner, *args, **kwargs))

    return method  # type: ignore[return-value]


def _on_loop(make: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    @functools.wraps(make)
    async def made(*args: P.args, **kwargs: P.kwargs) -> R:
        return make(*args, **kwargs)

    return made


def _then(method: Callable[P, R], wrap: Callable[[R], B]) -> Callable[P, B]:
    @functools.wraps(method)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> B:
        return wrap(method(*args, **kwargs))

    return wrapped


class Event(_Facade[asyncio.Event]):
    """A signal, such as that of a lost lease."""

    def is_set(self) -> bool:
        """Returns whether it was given."""
        return self._inner.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for it for at most `timeout` seconds, and returns whether it was given."""
        try:
            return _thread.run(asyncio.wait_for(self._inner.wait(), timeout))
        except TimeoutError:
            return False


class Delivery(_Facade[delivery.Delivery]):
    """A leased delivery, as `hive_client.Delivery`."""

    def __init__(self, inner: delivery.Delivery) -> None:
        super().__init__(inner)
        self.delivery = inner.delivery
        self.message = inner.message
        self.attempt = inner.attempt
        self.redelivery_cause = inner.redelivery_cause
        self.token = inner.token
        self.lost = Event(inner.lost)

    ack = _blocking(delivery.Delivery.ack)
    nack = _blocking(delivery.Delivery.nack)
    release = _blocking(delivery.Delivery.release)


class Mail(_Closing[mail.Mail]):
    """A stream of deliveries, as `hive_client.Mail`."""

    close = _blocking(mail.Mail.close)

    def __iter__(self) -> Iterator[Delivery]:
        for inner in _iterate(self._inner):
            yield Delivery(inner)

    def each(self, handler: Callable[[Delivery], object]) -> None:
        """Runs the handler for each delivery in a thread, up to the window at the same time.

        A return acks the delivery, an exception nacks it with its text. A thread is not cancelled:
        if its lease is lost, `Delivery.lost` is set, and nothing is settled. Returns when the mail
        is closed and all handlers have returned.

        Raises:
            HiveError: The refusal that ended the stream.
        """
        if not callable(handler):
            raise invalid("handler", handler, "give a function of one delivery")
        # A thread starts when no other one is free, so there are at most as many as deliveries.
        with ThreadPoolExecutor(_WINDOW_MAX, "hive-handler") as threads:

            async def work(inner: delivery.Delivery) -> None:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(threads, handler, Delivery(inner))

            _thread.run(self._inner.each(work))


class Follow(_Closing[follow.Follow]):
    """An iterator of facts, as `hive_client.Follow`."""

    close = _blocking(follow.Follow.close)

    def __enter__(self) -> Self:
        _thread.run(self._inner.__aenter__())
        return self

    def __iter__(self) -> Iterator[Fact | Gap | LogChanged]:
        yield from _iterate(self._inner)


class Asked(_Facade[asked.Asked]):
    """A question on disk, as `hive_client.Asked`."""

    def __init__(self, inner: asked.Asked) -> None:
        super().__init__(inner)
        self.question: v1.Question = inner.question
        self.already_asked = inner.already_asked

    outcome = _blocking(asked.Asked.outcome)


class Hive(_Closing[hive.Hive]):
    """A connection to a hive, as `hive_client.Hive`."""

    def __init__(self, inner: hive.Hive) -> None:
        super().__init__(inner)
        self._closed = threading.Lock()  # taken by the first `close`

    info = _blocking(hive.Hive.info)
    supports = _blocking(hive.Hive.supports)
    call = _blocking(hive.Hive.call)
    send = _blocking(hive.Hive.send)
    answer = _blocking(hive.Hive.answer)
    remind = _blocking(hive.Hive.remind)
    wake = _blocking(hive.Hive.wake)
    publish = _blocking(hive.Hive.publish)

    ask = _then(_blocking(hive.Hive.ask), Asked)
    follow = _then(_blocking(_on_loop(hive.Hive.follow)), Follow)
    mail = _then(_blocking(_on_loop(hive.Hive.mail)), Mail)

    def stub(self, stub: Callable[[Any], R]) -> R:
        """Returns the stub of a service on this connection, for `call`."""
        return self._inner.stub(stub)

    def close(self) -> None:
        """Closes all streams and the connection. Closing twice is fine."""
        if self._closed.acquire(blocking=False):
            try:
                _thread.run(self._inner.close())
            finally:
                _thread.release()


def _connecting(make: Callable[P, hive.Hive]) -> Callable[P, Hive]:
    @functools.wraps(make)
    def connect(*args: P.args, **kwargs: P.kwargs) -> Hive:
        _thread.acquire()
        try:
            return Hive(_thread.run(_on_loop(make)(*args, **kwargs)))
        except BaseException:
            _thread.release()
            raise

    return connect


connect = _connecting(hive.connect)


def _iterate(steps: AsyncIterator[R]) -> Iterator[R]:
    while _thread.loop is not None:
        step = _thread.run(_next(steps))
        if step is None:
            return
        yield step


async def _next(steps: AsyncIterator[R]) -> R | None:
    return await anext(steps, None)
