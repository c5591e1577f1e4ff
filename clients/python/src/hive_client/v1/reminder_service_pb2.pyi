import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import reminder_pb2 as _reminder_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateReminderRequest(_message.Message):
    __slots__ = ("request_id", "body", "delay", "due_time")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    DUE_TIME_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    body: str
    delay: _duration_pb2.Duration
    due_time: _timestamp_pb2.Timestamp
    def __init__(self, request_id: _Optional[str] = ..., body: _Optional[str] = ..., delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., due_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateReminderResponse(_message.Message):
    __slots__ = ("reminder", "already_set")
    REMINDER_FIELD_NUMBER: _ClassVar[int]
    ALREADY_SET_FIELD_NUMBER: _ClassVar[int]
    reminder: _reminder_pb2.Reminder
    already_set: bool
    def __init__(self, reminder: _Optional[_Union[_reminder_pb2.Reminder, _Mapping]] = ..., already_set: _Optional[bool] = ...) -> None: ...

class CancelReminderRequest(_message.Message):
    __slots__ = ("request_id", "reminder_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REMINDER_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    reminder_id: int
    def __init__(self, request_id: _Optional[str] = ..., reminder_id: _Optional[int] = ...) -> None: ...

class CancelReminderResponse(_message.Message):
    __slots__ = ("reminder",)
    REMINDER_FIELD_NUMBER: _ClassVar[int]
    reminder: _reminder_pb2.Reminder
    def __init__(self, reminder: _Optional[_Union[_reminder_pb2.Reminder, _Mapping]] = ...) -> None: ...

class ListRemindersRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "agent", "states")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    agent: str
    states: _containers.RepeatedScalarFieldContainer[_reminder_pb2.ReminderState]
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., agent: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_reminder_pb2.ReminderState, str]]] = ...) -> None: ...

class ListRemindersResponse(_message.Message):
    __slots__ = ("reminders", "next_page_token")
    REMINDERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    reminders: _containers.RepeatedCompositeFieldContainer[_reminder_pb2.Reminder]
    next_page_token: str
    def __init__(self, reminders: _Optional[_Iterable[_Union[_reminder_pb2.Reminder, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
