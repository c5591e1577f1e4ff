from . import schedule_pb2 as _schedule_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FireScheduleRequest(_message.Message):
    __slots__ = ("request_id", "schedule_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    schedule_id: int
    def __init__(self, request_id: _Optional[str] = ..., schedule_id: _Optional[int] = ...) -> None: ...

class FiredTarget(_message.Message):
    __slots__ = ("agent", "message_id", "problem")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    agent: str
    message_id: int
    problem: str
    def __init__(self, agent: _Optional[str] = ..., message_id: _Optional[int] = ..., problem: _Optional[str] = ...) -> None: ...

class FireScheduleResponse(_message.Message):
    __slots__ = ("schedule", "fired")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    FIRED_FIELD_NUMBER: _ClassVar[int]
    schedule: _schedule_pb2.Schedule
    fired: _containers.RepeatedCompositeFieldContainer[FiredTarget]
    def __init__(self, schedule: _Optional[_Union[_schedule_pb2.Schedule, _Mapping]] = ..., fired: _Optional[_Iterable[_Union[FiredTarget, _Mapping]]] = ...) -> None: ...

class CancelScheduleRequest(_message.Message):
    __slots__ = ("request_id", "schedule_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    schedule_id: int
    def __init__(self, request_id: _Optional[str] = ..., schedule_id: _Optional[int] = ...) -> None: ...

class CancelScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: _schedule_pb2.Schedule
    def __init__(self, schedule: _Optional[_Union[_schedule_pb2.Schedule, _Mapping]] = ...) -> None: ...

class ListSchedulesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "agent", "states")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    agent: str
    states: _containers.RepeatedScalarFieldContainer[_schedule_pb2.ScheduleState]
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., agent: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_schedule_pb2.ScheduleState, str]]] = ...) -> None: ...

class ListSchedulesResponse(_message.Message):
    __slots__ = ("schedules", "next_page_token")
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    schedules: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.Schedule]
    next_page_token: str
    def __init__(self, schedules: _Optional[_Iterable[_Union[_schedule_pb2.Schedule, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
