"""Pauses between attempts, and the parts of a request that a repeat depends on."""

import itertools
import random
import secrets
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from .error import HiveError

_FIRST, _LONGEST = 0.05, 5.0
# An answer can be lost, so no attempt waits for longer than this, in seconds.
_ATTEMPT = 10.0

_process = secrets.token_hex(6)
_numbers = itertools.count(1)


class Backoff:
    """The pauses of one piece of work. Each pause that the broker did not set doubles the next."""

    def __init__(self) -> None:
        self._own = _FIRST

    def pause(self, error: HiveError) -> float:
        """Returns the pause after this error, in seconds."""
        if error.retry_after:
            return error.retry_after * random.uniform(1, 1.25)
        own, self._own = self._own, min(2 * self._own, _LONGEST)
        return own * random.uniform(0.5, 1)

    def reset(self) -> None:
        """Begins with the first pause again, after a success."""
        self._own = _FIRST


def new_id() -> str:
    """Returns a request id: a random part of the process and a counter."""
    return f"{_process}-{next(_numbers)}"


def with_request_id(request: Message) -> Message:
    """Returns a copy of the request that has a request id, if such requests have one."""
    copy: Any = type(request)()
    copy.CopyFrom(request)
    if "request_id" in request.DESCRIPTOR.fields_by_name and not copy.request_id:
        copy.request_id = new_id()
    return copy


def attempt_timeout(request: Message) -> float:
    """Returns the longest time of one attempt, in seconds: that of an answer, and the wait."""
    wait = getattr(request, "wait", None)
    return _ATTEMPT + (wait.ToTimedelta().total_seconds() if isinstance(wait, Duration) else 0)
