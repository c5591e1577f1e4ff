"""The one error type of the kit, and what programs may know about a reason.

Each status and each refusal becomes a `HiveError` here, and nowhere else. The table of reasons is
read from the options in the generated descriptors, so it is that of the contract.
"""

from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from . import v1

_PREFIX = "REASON_"

_REASONS: dict[str, v1.ReasonOptions] = {
    value.name.removeprefix(_PREFIX): value.GetOptions().Extensions[v1.about]
    for value in v1.Reason.DESCRIPTOR.values
}

# The codes that gRPC gives to a call whose connection broke, or whose answer was lost.
_BROKEN = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN", "CANCELLED"}


class FieldViolation(NamedTuple):
    """A field of a request that is not valid."""

    field: str
    description: str


@dataclass(eq=False, repr=False)
class HiveError(Exception):
    """A call that failed.

    Attributes:
        code: Name of the gRPC code, such as `NOT_FOUND`.
        reason: Reason of the broker, such as `AGENT_NOT_FOUND`. Empty if the error did not come
            from the broker. Reasons of newer brokers are kept as they are.
        message: Sentence for people. Its wording may change.
        metadata: Facts of the reason for programs.
        fields: Fields of the request that are not valid.
        retry_after: Seconds after which a repeat may help, or None.
    """

    code: str
    message: str
    _: KW_ONLY
    reason: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    fields: list[FieldViolation] = field(default_factory=list)
    retry_after: float | None = None

    def __str__(self) -> str:
        reason = f" {self.reason}" if self.reason else ""
        return f"{self.code}{reason}: {self.message}"


def from_rpc_error(error: grpc.aio.AioRpcError) -> HiveError:
    """Makes a `HiveError` of a status and its details."""
    info, bad, retry = ErrorInfo(), BadRequest(), RetryInfo()
    for detail in _status_of(error).details:
        for message in (info, bad, retry):
            detail.Unpack(message)  # does nothing if the detail has another type
    ours = info.domain == "hive"
    made = HiveError(
        error.code().name,
        error.details() or "the call failed without a message; see the log of hived",
        reason=info.reason if ours else "",
        metadata=dict(info.metadata) if ours else {},
        fields=[FieldViolation(one.field, one.description) for one in bad.field_violations],
        retry_after=_retry_after(retry),
    )
    # The frames of its traceback would keep the call, and so the connection.
    made.__cause__ = error.with_traceback(None)
    return made


def from_refusal(refusal: v1.Refusal) -> HiveError:
    """Makes a `HiveError` of the refusal of a part of a call."""
    value = v1.Reason.DESCRIPTOR.values_by_number.get(refusal.reason)
    reason = value.name.removeprefix(_PREFIX) if value else str(refusal.reason)
    return HiveError(
        _REASONS[reason].code if value else "UNKNOWN",
        refusal.message,
        reason=reason,
        metadata=dict(refusal.metadata),
        retry_after=_retry_after(refusal),
    )


def is_repeatable(error: HiveError) -> bool:
    """Returns whether the identical request may succeed in a moment."""
    if error.reason:
        about = _REASONS.get(error.reason)
        return about is not None and about.retry == v1.Retry.RETRY_SOON
    return error.code in _BROKEN


def invalid(name: str, value: object, advice: str) -> HiveError:
    """Makes the error of an argument that cannot be right."""
    return HiveError("INVALID_ARGUMENT", f"{name} is {value!r}: {advice}")


def closed(what: str) -> HiveError:
    """Makes the error of a call on a closed object, such as `this Hive`."""
    return HiveError("CANCELLED", f"{what} is closed: call connect() for another one")


def _status_of(error: grpc.aio.AioRpcError) -> Status:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            try:
                return Status.FromString(value)
            except DecodeError:
                break  # not from a broker
    return Status()


def _retry_after(source: RetryInfo | v1.Refusal) -> float | None:
    known = source.HasField("retry_delay")
    return source.retry_delay.ToTimedelta().total_seconds() if known else None
