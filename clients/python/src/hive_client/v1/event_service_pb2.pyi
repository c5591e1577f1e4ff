from . import event_pb2 as _event_pb2
from . import watch_pb2 as _watch_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListEventsRequest(_message.Message):
    __slots__ = ("after_sequence", "page_size", "agent", "page_token", "log_id")
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LOG_ID_FIELD_NUMBER: _ClassVar[int]
    after_sequence: int
    page_size: int
    agent: str
    page_token: str
    log_id: str
    def __init__(self, after_sequence: _Optional[int] = ..., page_size: _Optional[int] = ..., agent: _Optional[str] = ..., page_token: _Optional[str] = ..., log_id: _Optional[str] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ("events", "last_sequence", "next_page_token", "log_id")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LOG_ID_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_event_pb2.Event]
    last_sequence: int
    next_page_token: str
    log_id: str
    def __init__(self, events: _Optional[_Iterable[_Union[_event_pb2.Event, _Mapping]]] = ..., last_sequence: _Optional[int] = ..., next_page_token: _Optional[str] = ..., log_id: _Optional[str] = ...) -> None: ...

class WatchEventsRequest(_message.Message):
    __slots__ = ("after_sequence", "agent", "log_id")
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    LOG_ID_FIELD_NUMBER: _ClassVar[int]
    after_sequence: int
    agent: str
    log_id: str
    def __init__(self, after_sequence: _Optional[int] = ..., agent: _Optional[str] = ..., log_id: _Optional[str] = ...) -> None: ...

class EventSnapshot(_message.Message):
    __slots__ = ("first_sequence", "last_sequence", "gap", "log_id", "log_changed", "complete")
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    LOG_ID_FIELD_NUMBER: _ClassVar[int]
    LOG_CHANGED_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    first_sequence: int
    last_sequence: int
    gap: bool
    log_id: str
    log_changed: bool
    complete: bool
    def __init__(self, first_sequence: _Optional[int] = ..., last_sequence: _Optional[int] = ..., gap: _Optional[bool] = ..., log_id: _Optional[str] = ..., log_changed: _Optional[bool] = ..., complete: _Optional[bool] = ...) -> None: ...

class EventBatch(_message.Message):
    __slots__ = ("events", "sequence")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_event_pb2.Event]
    sequence: int
    def __init__(self, events: _Optional[_Iterable[_Union[_event_pb2.Event, _Mapping]]] = ..., sequence: _Optional[int] = ...) -> None: ...

class WatchEventsResponse(_message.Message):
    __slots__ = ("snapshot", "batch", "progress")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    snapshot: EventSnapshot
    batch: EventBatch
    progress: _watch_pb2.WatchProgress
    def __init__(self, snapshot: _Optional[_Union[EventSnapshot, _Mapping]] = ..., batch: _Optional[_Union[EventBatch, _Mapping]] = ..., progress: _Optional[_Union[_watch_pb2.WatchProgress, _Mapping]] = ...) -> None: ...
