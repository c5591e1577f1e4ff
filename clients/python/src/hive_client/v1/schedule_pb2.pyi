import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ScheduleState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCHEDULE_STATE_UNSPECIFIED: _ClassVar[ScheduleState]
    SCHEDULE_STATE_ACTIVE: _ClassVar[ScheduleState]
    SCHEDULE_STATE_PAUSED: _ClassVar[ScheduleState]
    SCHEDULE_STATE_ENDED: _ClassVar[ScheduleState]
SCHEDULE_STATE_UNSPECIFIED: ScheduleState
SCHEDULE_STATE_ACTIVE: ScheduleState
SCHEDULE_STATE_PAUSED: ScheduleState
SCHEDULE_STATE_ENDED: ScheduleState

class ScheduleTarget(_message.Message):
    __slots__ = ("agent", "message_id", "skipped_count")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    agent: str
    message_id: int
    skipped_count: int
    def __init__(self, agent: _Optional[str] = ..., message_id: _Optional[int] = ..., skipped_count: _Optional[int] = ...) -> None: ...

class Schedule(_message.Message):
    __slots__ = ("id", "owner", "body", "targets", "state", "first_time", "interval", "zone", "late_max", "next_time", "create_time", "end_time", "end_cause")
    ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    FIRST_TIME_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    LATE_MAX_FIELD_NUMBER: _ClassVar[int]
    NEXT_TIME_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    END_CAUSE_FIELD_NUMBER: _ClassVar[int]
    id: int
    owner: str
    body: str
    targets: _containers.RepeatedCompositeFieldContainer[ScheduleTarget]
    state: ScheduleState
    first_time: _timestamp_pb2.Timestamp
    interval: _duration_pb2.Duration
    zone: str
    late_max: _duration_pb2.Duration
    next_time: _timestamp_pb2.Timestamp
    create_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    end_cause: str
    def __init__(self, id: _Optional[int] = ..., owner: _Optional[str] = ..., body: _Optional[str] = ..., targets: _Optional[_Iterable[_Union[ScheduleTarget, _Mapping]]] = ..., state: _Optional[_Union[ScheduleState, str]] = ..., first_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., zone: _Optional[str] = ..., late_max: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., next_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_cause: _Optional[str] = ...) -> None: ...
