import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LooseEndKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOOSE_END_KIND_UNSPECIFIED: _ClassVar[LooseEndKind]
    LOOSE_END_KIND_QUESTION_ASKED: _ClassVar[LooseEndKind]
    LOOSE_END_KIND_QUESTION_OWED: _ClassVar[LooseEndKind]
    LOOSE_END_KIND_REMINDER: _ClassVar[LooseEndKind]
    LOOSE_END_KIND_DEAD_LETTER: _ClassVar[LooseEndKind]
    LOOSE_END_KIND_EXTERNAL: _ClassVar[LooseEndKind]
    LOOSE_END_KIND_APPROVAL: _ClassVar[LooseEndKind]
LOOSE_END_KIND_UNSPECIFIED: LooseEndKind
LOOSE_END_KIND_QUESTION_ASKED: LooseEndKind
LOOSE_END_KIND_QUESTION_OWED: LooseEndKind
LOOSE_END_KIND_REMINDER: LooseEndKind
LOOSE_END_KIND_DEAD_LETTER: LooseEndKind
LOOSE_END_KIND_EXTERNAL: LooseEndKind
LOOSE_END_KIND_APPROVAL: LooseEndKind

class LooseEnd(_message.Message):
    __slots__ = ("kind", "id", "agent", "peer", "text", "create_time", "due_time", "key")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    DUE_TIME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    kind: LooseEndKind
    id: int
    agent: str
    peer: str
    text: str
    create_time: _timestamp_pb2.Timestamp
    due_time: _timestamp_pb2.Timestamp
    key: str
    def __init__(self, kind: _Optional[_Union[LooseEndKind, str]] = ..., id: _Optional[int] = ..., agent: _Optional[str] = ..., peer: _Optional[str] = ..., text: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., due_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., key: _Optional[str] = ...) -> None: ...
