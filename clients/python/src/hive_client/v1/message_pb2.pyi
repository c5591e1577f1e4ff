import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OriginKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ORIGIN_KIND_UNSPECIFIED: _ClassVar[OriginKind]
    ORIGIN_KIND_AGENT: _ClassVar[OriginKind]
    ORIGIN_KIND_OPERATOR: _ClassVar[OriginKind]
    ORIGIN_KIND_SYSTEM: _ClassVar[OriginKind]
    ORIGIN_KIND_EXTERNAL: _ClassVar[OriginKind]

class SystemKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SYSTEM_KIND_UNSPECIFIED: _ClassVar[SystemKind]
    SYSTEM_KIND_TURN_FAILED: _ClassVar[SystemKind]
    SYSTEM_KIND_DEAD_LETTER: _ClassVar[SystemKind]
    SYSTEM_KIND_RESTARTED: _ClassVar[SystemKind]
    SYSTEM_KIND_UNAVAILABLE: _ClassVar[SystemKind]
    SYSTEM_KIND_QUESTION_ASKED: _ClassVar[SystemKind]
    SYSTEM_KIND_QUESTION_ANSWERED: _ClassVar[SystemKind]
    SYSTEM_KIND_QUESTION_EXPIRED: _ClassVar[SystemKind]
    SYSTEM_KIND_QUESTION_CANCELLED: _ClassVar[SystemKind]
    SYSTEM_KIND_REMINDER: _ClassVar[SystemKind]
    SYSTEM_KIND_PROBLEM: _ClassVar[SystemKind]
    SYSTEM_KIND_STARTED: _ClassVar[SystemKind]
    SYSTEM_KIND_STOPPED: _ClassVar[SystemKind]
    SYSTEM_KIND_CRASHED: _ClassVar[SystemKind]
    SYSTEM_KIND_LOGGED_IN: _ClassVar[SystemKind]
    SYSTEM_KIND_RECOVERED: _ClassVar[SystemKind]
    SYSTEM_KIND_ACTION_ENDED: _ClassVar[SystemKind]
    SYSTEM_KIND_SCHEDULE_ENDED: _ClassVar[SystemKind]
    SYSTEM_KIND_HEARTBEAT: _ClassVar[SystemKind]
ORIGIN_KIND_UNSPECIFIED: OriginKind
ORIGIN_KIND_AGENT: OriginKind
ORIGIN_KIND_OPERATOR: OriginKind
ORIGIN_KIND_SYSTEM: OriginKind
ORIGIN_KIND_EXTERNAL: OriginKind
SYSTEM_KIND_UNSPECIFIED: SystemKind
SYSTEM_KIND_TURN_FAILED: SystemKind
SYSTEM_KIND_DEAD_LETTER: SystemKind
SYSTEM_KIND_RESTARTED: SystemKind
SYSTEM_KIND_UNAVAILABLE: SystemKind
SYSTEM_KIND_QUESTION_ASKED: SystemKind
SYSTEM_KIND_QUESTION_ANSWERED: SystemKind
SYSTEM_KIND_QUESTION_EXPIRED: SystemKind
SYSTEM_KIND_QUESTION_CANCELLED: SystemKind
SYSTEM_KIND_REMINDER: SystemKind
SYSTEM_KIND_PROBLEM: SystemKind
SYSTEM_KIND_STARTED: SystemKind
SYSTEM_KIND_STOPPED: SystemKind
SYSTEM_KIND_CRASHED: SystemKind
SYSTEM_KIND_LOGGED_IN: SystemKind
SYSTEM_KIND_RECOVERED: SystemKind
SYSTEM_KIND_ACTION_ENDED: SystemKind
SYSTEM_KIND_SCHEDULE_ENDED: SystemKind
SYSTEM_KIND_HEARTBEAT: SystemKind

class Origin(_message.Message):
    __slots__ = ("kind", "name")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    kind: OriginKind
    name: str
    def __init__(self, kind: _Optional[_Union[OriginKind, str]] = ..., name: _Optional[str] = ...) -> None: ...

class OperatorRecipient(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ParentRecipient(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EveryoneRecipient(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Recipient(_message.Message):
    __slots__ = ("agent", "operator", "parent", "everyone")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    EVERYONE_FIELD_NUMBER: _ClassVar[int]
    agent: str
    operator: OperatorRecipient
    parent: ParentRecipient
    everyone: EveryoneRecipient
    def __init__(self, agent: _Optional[str] = ..., operator: _Optional[_Union[OperatorRecipient, _Mapping]] = ..., parent: _Optional[_Union[ParentRecipient, _Mapping]] = ..., everyone: _Optional[_Union[EveryoneRecipient, _Mapping]] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("id", "origin", "recipients", "body", "in_reply_to", "accept_time", "system_kind", "broadcast", "turn_id", "coalescing_key", "question_id", "reminder_id", "recipient_count", "traceparent")
    ID_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    RECIPIENTS_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    IN_REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_TIME_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_KIND_FIELD_NUMBER: _ClassVar[int]
    BROADCAST_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    COALESCING_KEY_FIELD_NUMBER: _ClassVar[int]
    QUESTION_ID_FIELD_NUMBER: _ClassVar[int]
    REMINDER_ID_FIELD_NUMBER: _ClassVar[int]
    RECIPIENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    id: int
    origin: Origin
    recipients: _containers.RepeatedScalarFieldContainer[str]
    body: str
    in_reply_to: int
    accept_time: _timestamp_pb2.Timestamp
    system_kind: SystemKind
    broadcast: bool
    turn_id: int
    coalescing_key: str
    question_id: int
    reminder_id: int
    recipient_count: int
    traceparent: str
    def __init__(self, id: _Optional[int] = ..., origin: _Optional[_Union[Origin, _Mapping]] = ..., recipients: _Optional[_Iterable[str]] = ..., body: _Optional[str] = ..., in_reply_to: _Optional[int] = ..., accept_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., system_kind: _Optional[_Union[SystemKind, str]] = ..., broadcast: _Optional[bool] = ..., turn_id: _Optional[int] = ..., coalescing_key: _Optional[str] = ..., question_id: _Optional[int] = ..., reminder_id: _Optional[int] = ..., recipient_count: _Optional[int] = ..., traceparent: _Optional[str] = ...) -> None: ...
