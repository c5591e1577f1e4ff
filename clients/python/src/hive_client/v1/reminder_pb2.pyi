import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReminderState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REMINDER_STATE_UNSPECIFIED: _ClassVar[ReminderState]
    REMINDER_STATE_PENDING: _ClassVar[ReminderState]
    REMINDER_STATE_FIRED: _ClassVar[ReminderState]
    REMINDER_STATE_CANCELLED: _ClassVar[ReminderState]
REMINDER_STATE_UNSPECIFIED: ReminderState
REMINDER_STATE_PENDING: ReminderState
REMINDER_STATE_FIRED: ReminderState
REMINDER_STATE_CANCELLED: ReminderState

class Reminder(_message.Message):
    __slots__ = ("id", "agent", "body", "state", "create_time", "due_time", "close_time", "message_id", "turn_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    DUE_TIME_FIELD_NUMBER: _ClassVar[int]
    CLOSE_TIME_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    agent: str
    body: str
    state: ReminderState
    create_time: _timestamp_pb2.Timestamp
    due_time: _timestamp_pb2.Timestamp
    close_time: _timestamp_pb2.Timestamp
    message_id: int
    turn_id: int
    def __init__(self, id: _Optional[int] = ..., agent: _Optional[str] = ..., body: _Optional[str] = ..., state: _Optional[_Union[ReminderState, str]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., due_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., close_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., message_id: _Optional[int] = ..., turn_id: _Optional[int] = ...) -> None: ...
