import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetLogsRequest(_message.Message):
    __slots__ = ("agent", "lines")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    agent: str
    lines: int
    def __init__(self, agent: _Optional[str] = ..., lines: _Optional[int] = ...) -> None: ...

class GetLogsResponse(_message.Message):
    __slots__ = ("lines", "truncated")
    LINES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedScalarFieldContainer[str]
    truncated: bool
    def __init__(self, lines: _Optional[_Iterable[str]] = ..., truncated: _Optional[bool] = ...) -> None: ...

class GetHostJournalRequest(_message.Message):
    __slots__ = ("unit", "since", "lines")
    UNIT_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    unit: str
    since: _timestamp_pb2.Timestamp
    lines: int
    def __init__(self, unit: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., lines: _Optional[int] = ...) -> None: ...

class GetHostJournalResponse(_message.Message):
    __slots__ = ("lines", "truncated")
    LINES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedScalarFieldContainer[str]
    truncated: bool
    def __init__(self, lines: _Optional[_Iterable[str]] = ..., truncated: _Optional[bool] = ...) -> None: ...
