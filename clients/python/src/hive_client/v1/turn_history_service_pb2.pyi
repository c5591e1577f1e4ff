import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import message_pb2 as _message_pb2
from . import turn_pb2 as _turn_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_STATE_UNSPECIFIED: _ClassVar[RunState]
    RUN_STATE_PARTIAL: _ClassVar[RunState]
    RUN_STATE_FINAL: _ClassVar[RunState]
    RUN_STATE_ERROR: _ClassVar[RunState]
RUN_STATE_UNSPECIFIED: RunState
RUN_STATE_PARTIAL: RunState
RUN_STATE_FINAL: RunState
RUN_STATE_ERROR: RunState

class ListTurnsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "agent")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    agent: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., agent: _Optional[str] = ...) -> None: ...

class ListTurnsResponse(_message.Message):
    __slots__ = ("turns", "next_page_token")
    TURNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    turns: _containers.RepeatedCompositeFieldContainer[_turn_pb2.Turn]
    next_page_token: str
    def __init__(self, turns: _Optional[_Iterable[_Union[_turn_pb2.Turn, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetTurnRequest(_message.Message):
    __slots__ = ("turn_id",)
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    turn_id: int
    def __init__(self, turn_id: _Optional[int] = ...) -> None: ...

class GetTurnResponse(_message.Message):
    __slots__ = ("turn",)
    TURN_FIELD_NUMBER: _ClassVar[int]
    turn: _turn_pb2.Turn
    def __init__(self, turn: _Optional[_Union[_turn_pb2.Turn, _Mapping]] = ...) -> None: ...

class WatchTurnRequest(_message.Message):
    __slots__ = ("turn_id", "after_sequence", "follow")
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    turn_id: int
    after_sequence: int
    follow: bool
    def __init__(self, turn_id: _Optional[int] = ..., after_sequence: _Optional[int] = ..., follow: _Optional[bool] = ...) -> None: ...

class TurnSnapshot(_message.Message):
    __slots__ = ("events", "complete", "state", "state_time")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_TIME_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_turn_pb2.TurnEvent]
    complete: bool
    state: RunState
    state_time: _timestamp_pb2.Timestamp
    def __init__(self, events: _Optional[_Iterable[_Union[_turn_pb2.TurnEvent, _Mapping]]] = ..., complete: _Optional[bool] = ..., state: _Optional[_Union[RunState, str]] = ..., state_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TurnBatch(_message.Message):
    __slots__ = ("events", "state", "state_time")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_TIME_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_turn_pb2.TurnEvent]
    state: RunState
    state_time: _timestamp_pb2.Timestamp
    def __init__(self, events: _Optional[_Iterable[_Union[_turn_pb2.TurnEvent, _Mapping]]] = ..., state: _Optional[_Union[RunState, str]] = ..., state_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class WatchTurnResponse(_message.Message):
    __slots__ = ("snapshot", "batch")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    snapshot: TurnSnapshot
    batch: TurnBatch
    def __init__(self, snapshot: _Optional[_Union[TurnSnapshot, _Mapping]] = ..., batch: _Optional[_Union[TurnBatch, _Mapping]] = ...) -> None: ...

class GetTurnStatsRequest(_message.Message):
    __slots__ = ("agent", "window")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    agent: str
    window: _duration_pb2.Duration
    def __init__(self, agent: _Optional[str] = ..., window: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GetTurnStatsResponse(_message.Message):
    __slots__ = ("start_time", "end_time", "total", "agents", "open")
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    total: TurnStats
    agents: _containers.RepeatedCompositeFieldContainer[AgentTurnStats]
    open: OpenCounts
    def __init__(self, start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., total: _Optional[_Union[TurnStats, _Mapping]] = ..., agents: _Optional[_Iterable[_Union[AgentTurnStats, _Mapping]]] = ..., open: _Optional[_Union[OpenCounts, _Mapping]] = ...) -> None: ...

class OpenCounts(_message.Message):
    __slots__ = ("questions_asked", "questions_owed", "reminders_pending")
    QUESTIONS_ASKED_FIELD_NUMBER: _ClassVar[int]
    QUESTIONS_OWED_FIELD_NUMBER: _ClassVar[int]
    REMINDERS_PENDING_FIELD_NUMBER: _ClassVar[int]
    questions_asked: int
    questions_owed: int
    reminders_pending: int
    def __init__(self, questions_asked: _Optional[int] = ..., questions_owed: _Optional[int] = ..., reminders_pending: _Optional[int] = ...) -> None: ...

class AgentTurnStats(_message.Message):
    __slots__ = ("agent", "stats")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    agent: str
    stats: TurnStats
    def __init__(self, agent: _Optional[str] = ..., stats: _Optional[_Union[TurnStats, _Mapping]] = ...) -> None: ...

class TurnStats(_message.Message):
    __slots__ = ("turn_count", "kinds", "outcomes", "usage", "duration_p50", "duration_p95", "compaction_count", "tools", "wakes", "slices")
    TURN_COUNT_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    DURATION_P50_FIELD_NUMBER: _ClassVar[int]
    DURATION_P95_FIELD_NUMBER: _ClassVar[int]
    COMPACTION_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    WAKES_FIELD_NUMBER: _ClassVar[int]
    SLICES_FIELD_NUMBER: _ClassVar[int]
    turn_count: int
    kinds: _containers.RepeatedCompositeFieldContainer[TurnKindCount]
    outcomes: _containers.RepeatedCompositeFieldContainer[TurnOutcomeCount]
    usage: _turn_pb2.TurnUsage
    duration_p50: _duration_pb2.Duration
    duration_p95: _duration_pb2.Duration
    compaction_count: int
    tools: _containers.RepeatedCompositeFieldContainer[_turn_pb2.ToolUse]
    wakes: _containers.RepeatedCompositeFieldContainer[TurnWakeCount]
    slices: _containers.RepeatedCompositeFieldContainer[TurnStatsSlice]
    def __init__(self, turn_count: _Optional[int] = ..., kinds: _Optional[_Iterable[_Union[TurnKindCount, _Mapping]]] = ..., outcomes: _Optional[_Iterable[_Union[TurnOutcomeCount, _Mapping]]] = ..., usage: _Optional[_Union[_turn_pb2.TurnUsage, _Mapping]] = ..., duration_p50: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., duration_p95: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., compaction_count: _Optional[int] = ..., tools: _Optional[_Iterable[_Union[_turn_pb2.ToolUse, _Mapping]]] = ..., wakes: _Optional[_Iterable[_Union[TurnWakeCount, _Mapping]]] = ..., slices: _Optional[_Iterable[_Union[TurnStatsSlice, _Mapping]]] = ...) -> None: ...

class TurnKindCount(_message.Message):
    __slots__ = ("kind", "count")
    KIND_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    kind: _turn_pb2.TurnKind
    count: int
    def __init__(self, kind: _Optional[_Union[_turn_pb2.TurnKind, str]] = ..., count: _Optional[int] = ...) -> None: ...

class TurnOutcomeCount(_message.Message):
    __slots__ = ("outcome", "count")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    outcome: _turn_pb2.TurnOutcome
    count: int
    def __init__(self, outcome: _Optional[_Union[_turn_pb2.TurnOutcome, str]] = ..., count: _Optional[int] = ...) -> None: ...

class TurnWakeCount(_message.Message):
    __slots__ = ("origin_kind", "detail", "count")
    ORIGIN_KIND_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    origin_kind: _message_pb2.OriginKind
    detail: str
    count: int
    def __init__(self, origin_kind: _Optional[_Union[_message_pb2.OriginKind, str]] = ..., detail: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class TurnStatsSlice(_message.Message):
    __slots__ = ("start_time", "turn_count", "not_ok_count", "cost_micro_usd", "output_tokens")
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    TURN_COUNT_FIELD_NUMBER: _ClassVar[int]
    NOT_OK_COUNT_FIELD_NUMBER: _ClassVar[int]
    COST_MICRO_USD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    start_time: _timestamp_pb2.Timestamp
    turn_count: int
    not_ok_count: int
    cost_micro_usd: int
    output_tokens: int
    def __init__(self, start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., turn_count: _Optional[int] = ..., not_ok_count: _Optional[int] = ..., cost_micro_usd: _Optional[int] = ..., output_tokens: _Optional[int] = ...) -> None: ...
