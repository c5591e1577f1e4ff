import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CommandKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMMAND_KIND_UNSPECIFIED: _ClassVar[CommandKind]
    COMMAND_KIND_CANCEL_TURN: _ClassVar[CommandKind]
    COMMAND_KIND_START_NEW_SESSION: _ClassVar[CommandKind]
    COMMAND_KIND_SET_MODEL: _ClassVar[CommandKind]
    COMMAND_KIND_RESTART_HARNESS: _ClassVar[CommandKind]
    COMMAND_KIND_COMPACT_SESSION: _ClassVar[CommandKind]
    COMMAND_KIND_LOGIN: _ClassVar[CommandKind]
COMMAND_KIND_UNSPECIFIED: CommandKind
COMMAND_KIND_CANCEL_TURN: CommandKind
COMMAND_KIND_START_NEW_SESSION: CommandKind
COMMAND_KIND_SET_MODEL: CommandKind
COMMAND_KIND_RESTART_HARNESS: CommandKind
COMMAND_KIND_COMPACT_SESSION: CommandKind
COMMAND_KIND_LOGIN: CommandKind

class CancelTurn(_message.Message):
    __slots__ = ("turn_id",)
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    turn_id: int
    def __init__(self, turn_id: _Optional[int] = ...) -> None: ...

class StartNewSession(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SetModel(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: str
    def __init__(self, model: _Optional[str] = ...) -> None: ...

class RestartHarness(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CompactSession(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Command(_message.Message):
    __slots__ = ("id", "cancel_turn", "start_new_session", "set_model", "restart_harness", "compact_session", "create_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    CANCEL_TURN_FIELD_NUMBER: _ClassVar[int]
    START_NEW_SESSION_FIELD_NUMBER: _ClassVar[int]
    SET_MODEL_FIELD_NUMBER: _ClassVar[int]
    RESTART_HARNESS_FIELD_NUMBER: _ClassVar[int]
    COMPACT_SESSION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    id: int
    cancel_turn: CancelTurn
    start_new_session: StartNewSession
    set_model: SetModel
    restart_harness: RestartHarness
    compact_session: CompactSession
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[int] = ..., cancel_turn: _Optional[_Union[CancelTurn, _Mapping]] = ..., start_new_session: _Optional[_Union[StartNewSession, _Mapping]] = ..., set_model: _Optional[_Union[SetModel, _Mapping]] = ..., restart_harness: _Optional[_Union[RestartHarness, _Mapping]] = ..., compact_session: _Optional[_Union[CompactSession, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
