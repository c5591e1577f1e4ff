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

class TurnKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TURN_KIND_UNSPECIFIED: _ClassVar[TurnKind]
    TURN_KIND_MAIL: _ClassVar[TurnKind]
    TURN_KIND_CONTINUE: _ClassVar[TurnKind]
    TURN_KIND_CHECKPOINT: _ClassVar[TurnKind]
    TURN_KIND_COMPACT: _ClassVar[TurnKind]

class TurnOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TURN_OUTCOME_UNSPECIFIED: _ClassVar[TurnOutcome]
    TURN_OUTCOME_OK: _ClassVar[TurnOutcome]
    TURN_OUTCOME_FAILED: _ClassVar[TurnOutcome]
    TURN_OUTCOME_RATE_LIMITED: _ClassVar[TurnOutcome]
    TURN_OUTCOME_AUTH_FAILED: _ClassVar[TurnOutcome]
    TURN_OUTCOME_UNAVAILABLE: _ClassVar[TurnOutcome]
    TURN_OUTCOME_CANCELLED: _ClassVar[TurnOutcome]
    TURN_OUTCOME_DRAINED: _ClassVar[TurnOutcome]
    TURN_OUTCOME_VANISHED: _ClassVar[TurnOutcome]
    TURN_OUTCOME_FENCED: _ClassVar[TurnOutcome]

class TurnEventStream(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TURN_EVENT_STREAM_UNSPECIFIED: _ClassVar[TurnEventStream]
    TURN_EVENT_STREAM_STDOUT: _ClassVar[TurnEventStream]
    TURN_EVENT_STREAM_STDERR: _ClassVar[TurnEventStream]
    TURN_EVENT_STREAM_NOTE: _ClassVar[TurnEventStream]
TURN_KIND_UNSPECIFIED: TurnKind
TURN_KIND_MAIL: TurnKind
TURN_KIND_CONTINUE: TurnKind
TURN_KIND_CHECKPOINT: TurnKind
TURN_KIND_COMPACT: TurnKind
TURN_OUTCOME_UNSPECIFIED: TurnOutcome
TURN_OUTCOME_OK: TurnOutcome
TURN_OUTCOME_FAILED: TurnOutcome
TURN_OUTCOME_RATE_LIMITED: TurnOutcome
TURN_OUTCOME_AUTH_FAILED: TurnOutcome
TURN_OUTCOME_UNAVAILABLE: TurnOutcome
TURN_OUTCOME_CANCELLED: TurnOutcome
TURN_OUTCOME_DRAINED: TurnOutcome
TURN_OUTCOME_VANISHED: TurnOutcome
TURN_OUTCOME_FENCED: TurnOutcome
TURN_EVENT_STREAM_UNSPECIFIED: TurnEventStream
TURN_EVENT_STREAM_STDOUT: TurnEventStream
TURN_EVENT_STREAM_STDERR: TurnEventStream
TURN_EVENT_STREAM_NOTE: TurnEventStream

class TurnUsage(_message.Message):
    __slots__ = ("input_tokens", "cache_read_tokens", "cache_creation_tokens", "output_tokens", "cost_micro_usd", "inference_count", "tool_call_count")
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_READ_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_CREATION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_MICRO_USD_FIELD_NUMBER: _ClassVar[int]
    INFERENCE_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_COUNT_FIELD_NUMBER: _ClassVar[int]
    input_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int
    output_tokens: int
    cost_micro_usd: int
    inference_count: int
    tool_call_count: int
    def __init__(self, input_tokens: _Optional[int] = ..., cache_read_tokens: _Optional[int] = ..., cache_creation_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_micro_usd: _Optional[int] = ..., inference_count: _Optional[int] = ..., tool_call_count: _Optional[int] = ...) -> None: ...

class ToolUse(_message.Message):
    __slots__ = ("name", "count")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class Turn(_message.Message):
    __slots__ = ("id", "agent", "kind", "conversation", "session_epoch", "message_id", "attempt", "outcome", "start_time", "end_time", "error", "output_tail", "usage", "model", "context_tokens", "context_window_tokens", "compacted", "received_message_ids", "sent_message_ids", "traceparent")
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    SESSION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TAIL_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_WINDOW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPACTED_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_MESSAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    SENT_MESSAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    id: int
    agent: str
    kind: TurnKind
    conversation: str
    session_epoch: int
    message_id: int
    attempt: int
    outcome: TurnOutcome
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    error: str
    output_tail: str
    usage: TurnUsage
    model: str
    context_tokens: int
    context_window_tokens: int
    compacted: bool
    received_message_ids: _containers.RepeatedScalarFieldContainer[int]
    sent_message_ids: _containers.RepeatedScalarFieldContainer[int]
    traceparent: str
    def __init__(self, id: _Optional[int] = ..., agent: _Optional[str] = ..., kind: _Optional[_Union[TurnKind, str]] = ..., conversation: _Optional[str] = ..., session_epoch: _Optional[int] = ..., message_id: _Optional[int] = ..., attempt: _Optional[int] = ..., outcome: _Optional[_Union[TurnOutcome, str]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., error: _Optional[str] = ..., output_tail: _Optional[str] = ..., usage: _Optional[_Union[TurnUsage, _Mapping]] = ..., model: _Optional[str] = ..., context_tokens: _Optional[int] = ..., context_window_tokens: _Optional[int] = ..., compacted: _Optional[bool] = ..., received_message_ids: _Optional[_Iterable[int]] = ..., sent_message_ids: _Optional[_Iterable[int]] = ..., traceparent: _Optional[str] = ...) -> None: ...

class TurnEvent(_message.Message):
    __slots__ = ("sequence", "stream", "line", "time")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    stream: TurnEventStream
    line: str
    time: _timestamp_pb2.Timestamp
    def __init__(self, sequence: _Optional[int] = ..., stream: _Optional[_Union[TurnEventStream, str]] = ..., line: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Park(_message.Message):
    __slots__ = ("cause", "until_time", "error", "remaining")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_TIME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    cause: TurnOutcome
    until_time: _timestamp_pb2.Timestamp
    error: str
    remaining: _duration_pb2.Duration
    def __init__(self, cause: _Optional[_Union[TurnOutcome, str]] = ..., until_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., error: _Optional[str] = ..., remaining: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
