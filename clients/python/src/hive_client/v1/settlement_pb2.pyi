import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from . import delivery_pb2 as _delivery_pb2
from . import refusal_pb2 as _refusal_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Settlement(_message.Message):
    __slots__ = ("lease_token", "key", "ack", "nack", "extend", "release")
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    NACK_FIELD_NUMBER: _ClassVar[int]
    EXTEND_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    lease_token: str
    key: _delivery_pb2.DeliveryKey
    ack: Ack
    nack: Nack
    extend: Extend
    release: Release
    def __init__(self, lease_token: _Optional[str] = ..., key: _Optional[_Union[_delivery_pb2.DeliveryKey, _Mapping]] = ..., ack: _Optional[_Union[Ack, _Mapping]] = ..., nack: _Optional[_Union[Nack, _Mapping]] = ..., extend: _Optional[_Union[Extend, _Mapping]] = ..., release: _Optional[_Union[Release, _Mapping]] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Nack(_message.Message):
    __slots__ = ("error", "permanent")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PERMANENT_FIELD_NUMBER: _ClassVar[int]
    error: str
    permanent: bool
    def __init__(self, error: _Optional[str] = ..., permanent: _Optional[bool] = ...) -> None: ...

class Extend(_message.Message):
    __slots__ = ("lease_duration",)
    LEASE_DURATION_FIELD_NUMBER: _ClassVar[int]
    lease_duration: _duration_pb2.Duration
    def __init__(self, lease_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Release(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SettlementResult(_message.Message):
    __slots__ = ("state", "lease_remaining", "refusal")
    STATE_FIELD_NUMBER: _ClassVar[int]
    LEASE_REMAINING_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    state: _delivery_pb2.DeliveryState
    lease_remaining: _duration_pb2.Duration
    refusal: _refusal_pb2.Refusal
    def __init__(self, state: _Optional[_Union[_delivery_pb2.DeliveryState, str]] = ..., lease_remaining: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., refusal: _Optional[_Union[_refusal_pb2.Refusal, _Mapping]] = ...) -> None: ...
