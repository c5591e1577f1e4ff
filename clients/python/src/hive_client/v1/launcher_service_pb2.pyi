import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import admin_service_pb2 as _admin_service_pb2
from . import agent_pb2 as _agent_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HarnessReport(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HARNESS_REPORT_UNSPECIFIED: _ClassVar[HarnessReport]
    HARNESS_REPORT_STARTED: _ClassVar[HarnessReport]
    HARNESS_REPORT_STOPPED: _ClassVar[HarnessReport]
    HARNESS_REPORT_CRASHED: _ClassVar[HarnessReport]
    HARNESS_REPORT_STEADY: _ClassVar[HarnessReport]
HARNESS_REPORT_UNSPECIFIED: HarnessReport
HARNESS_REPORT_STARTED: HarnessReport
HARNESS_REPORT_STOPPED: HarnessReport
HARNESS_REPORT_CRASHED: HarnessReport
HARNESS_REPORT_STEADY: HarnessReport

class LaunchRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WantedHarness(_message.Message):
    __slots__ = ("name", "wanted", "restart_count", "start_now")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    RESTART_COUNT_FIELD_NUMBER: _ClassVar[int]
    START_NOW_FIELD_NUMBER: _ClassVar[int]
    name: str
    wanted: _agent_pb2.WantedState
    restart_count: int
    start_now: bool
    def __init__(self, name: _Optional[str] = ..., wanted: _Optional[_Union[_agent_pb2.WantedState, str]] = ..., restart_count: _Optional[int] = ..., start_now: _Optional[bool] = ...) -> None: ...

class LaunchResponse(_message.Message):
    __slots__ = ("harnesses", "gone", "purges", "complete", "logs_wanted")
    HARNESSES_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    PURGES_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    LOGS_WANTED_FIELD_NUMBER: _ClassVar[int]
    harnesses: _containers.RepeatedCompositeFieldContainer[WantedHarness]
    gone: _containers.RepeatedScalarFieldContainer[str]
    purges: _containers.RepeatedCompositeFieldContainer[_admin_service_pb2.Purge]
    complete: bool
    logs_wanted: _containers.RepeatedCompositeFieldContainer[LogsWanted]
    def __init__(self, harnesses: _Optional[_Iterable[_Union[WantedHarness, _Mapping]]] = ..., gone: _Optional[_Iterable[str]] = ..., purges: _Optional[_Iterable[_Union[_admin_service_pb2.Purge, _Mapping]]] = ..., complete: _Optional[bool] = ..., logs_wanted: _Optional[_Iterable[_Union[LogsWanted, _Mapping]]] = ...) -> None: ...

class LogsWanted(_message.Message):
    __slots__ = ("id", "agent", "journal", "lines")
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    id: int
    agent: str
    journal: JournalOfUnit
    lines: int
    def __init__(self, id: _Optional[int] = ..., agent: _Optional[str] = ..., journal: _Optional[_Union[JournalOfUnit, _Mapping]] = ..., lines: _Optional[int] = ...) -> None: ...

class JournalOfUnit(_message.Message):
    __slots__ = ("unit", "since")
    UNIT_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    unit: str
    since: _timestamp_pb2.Timestamp
    def __init__(self, unit: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ReportHarnessRequest(_message.Message):
    __slots__ = ("name", "report", "restart_count", "text")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    RESTART_COUNT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    name: str
    report: HarnessReport
    restart_count: int
    text: str
    def __init__(self, name: _Optional[str] = ..., report: _Optional[_Union[HarnessReport, str]] = ..., restart_count: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class ReportHarnessResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AnswerLogsRequest(_message.Message):
    __slots__ = ("id", "text", "truncated", "problem")
    ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    id: int
    text: str
    truncated: bool
    problem: str
    def __init__(self, id: _Optional[int] = ..., text: _Optional[str] = ..., truncated: _Optional[bool] = ..., problem: _Optional[str] = ...) -> None: ...

class AnswerLogsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
