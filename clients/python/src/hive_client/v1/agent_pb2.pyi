import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import turn_pb2 as _turn_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AgentSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AGENT_SOURCE_UNSPECIFIED: _ClassVar[AgentSource]
    AGENT_SOURCE_FILE: _ClassVar[AgentSource]
    AGENT_SOURCE_RUNTIME: _ClassVar[AgentSource]

class HarnessState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HARNESS_STATE_UNSPECIFIED: _ClassVar[HarnessState]
    HARNESS_STATE_OFFLINE: _ClassVar[HarnessState]
    HARNESS_STATE_STARTING: _ClassVar[HarnessState]
    HARNESS_STATE_IDLE: _ClassVar[HarnessState]
    HARNESS_STATE_THINKING: _ClassVar[HarnessState]
    HARNESS_STATE_COMPACTING: _ClassVar[HarnessState]
    HARNESS_STATE_RATE_LIMITED: _ClassVar[HarnessState]
    HARNESS_STATE_NEEDS_LOGIN: _ClassVar[HarnessState]
    HARNESS_STATE_UNAVAILABLE: _ClassVar[HarnessState]
    HARNESS_STATE_STOPPED: _ClassVar[HarnessState]

class Isolation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ISOLATION_UNSPECIFIED: _ClassVar[Isolation]
    ISOLATION_NONE: _ClassVar[Isolation]
    ISOLATION_UID: _ClassVar[Isolation]
    ISOLATION_PARTLY: _ClassVar[Isolation]
    ISOLATION_SANDBOX: _ClassVar[Isolation]
    ISOLATION_UNIT: _ClassVar[Isolation]

class KickOnStart(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KICK_ON_START_UNSPECIFIED: _ClassVar[KickOnStart]
    KICK_ON_START_INTERRUPTED: _ClassVar[KickOnStart]
    KICK_ON_START_ALWAYS: _ClassVar[KickOnStart]
    KICK_ON_START_NEVER: _ClassVar[KickOnStart]

class WantedState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WANTED_STATE_UNSPECIFIED: _ClassVar[WantedState]
    WANTED_STATE_RUNNING: _ClassVar[WantedState]
    WANTED_STATE_ON_DEMAND: _ClassVar[WantedState]
    WANTED_STATE_STOPPED: _ClassVar[WantedState]
AGENT_SOURCE_UNSPECIFIED: AgentSource
AGENT_SOURCE_FILE: AgentSource
AGENT_SOURCE_RUNTIME: AgentSource
HARNESS_STATE_UNSPECIFIED: HarnessState
HARNESS_STATE_OFFLINE: HarnessState
HARNESS_STATE_STARTING: HarnessState
HARNESS_STATE_IDLE: HarnessState
HARNESS_STATE_THINKING: HarnessState
HARNESS_STATE_COMPACTING: HarnessState
HARNESS_STATE_RATE_LIMITED: HarnessState
HARNESS_STATE_NEEDS_LOGIN: HarnessState
HARNESS_STATE_UNAVAILABLE: HarnessState
HARNESS_STATE_STOPPED: HarnessState
ISOLATION_UNSPECIFIED: Isolation
ISOLATION_NONE: Isolation
ISOLATION_UID: Isolation
ISOLATION_PARTLY: Isolation
ISOLATION_SANDBOX: Isolation
ISOLATION_UNIT: Isolation
KICK_ON_START_UNSPECIFIED: KickOnStart
KICK_ON_START_INTERRUPTED: KickOnStart
KICK_ON_START_ALWAYS: KickOnStart
KICK_ON_START_NEVER: KickOnStart
WANTED_STATE_UNSPECIFIED: WantedState
WANTED_STATE_RUNNING: WantedState
WANTED_STATE_ON_DEMAND: WantedState
WANTED_STATE_STOPPED: WantedState

class Policy(_message.Message):
    __slots__ = ("tool_groups", "allowed_recipients", "capabilities", "sends_per_minute_max", "sender_stored_bytes_max", "questions_open_max", "reminders_pending_max", "etag", "grants", "children_max", "schedules_max")
    TOOL_GROUPS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_RECIPIENTS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    SENDS_PER_MINUTE_MAX_FIELD_NUMBER: _ClassVar[int]
    SENDER_STORED_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    QUESTIONS_OPEN_MAX_FIELD_NUMBER: _ClassVar[int]
    REMINDERS_PENDING_MAX_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_MAX_FIELD_NUMBER: _ClassVar[int]
    SCHEDULES_MAX_FIELD_NUMBER: _ClassVar[int]
    tool_groups: _containers.RepeatedScalarFieldContainer[str]
    allowed_recipients: _containers.RepeatedScalarFieldContainer[str]
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    sends_per_minute_max: int
    sender_stored_bytes_max: int
    questions_open_max: int
    reminders_pending_max: int
    etag: str
    grants: _containers.RepeatedScalarFieldContainer[str]
    children_max: int
    schedules_max: int
    def __init__(self, tool_groups: _Optional[_Iterable[str]] = ..., allowed_recipients: _Optional[_Iterable[str]] = ..., capabilities: _Optional[_Iterable[str]] = ..., sends_per_minute_max: _Optional[int] = ..., sender_stored_bytes_max: _Optional[int] = ..., questions_open_max: _Optional[int] = ..., reminders_pending_max: _Optional[int] = ..., etag: _Optional[str] = ..., grants: _Optional[_Iterable[str]] = ..., children_max: _Optional[int] = ..., schedules_max: _Optional[int] = ...) -> None: ...

class Agent(_message.Message):
    __slots__ = ("name", "role", "parent", "source", "state", "state_time", "running", "status_text", "status_time", "model", "context_tokens", "context_window_tokens", "hive_name", "swarm_name", "revision", "policy", "park", "retired", "ready_count", "dead_count", "isolation", "open_turn_ids", "context_time", "available_models", "stopped", "model_in_use", "on_demand", "restart_count", "kick_on_start", "isolation_notes", "etag")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_TIME_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    STATUS_TEXT_FIELD_NUMBER: _ClassVar[int]
    STATUS_TIME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_WINDOW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    HIVE_NAME_FIELD_NUMBER: _ClassVar[int]
    SWARM_NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PARK_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    READY_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEAD_COUNT_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    OPEN_TURN_IDS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TIME_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_MODELS_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    MODEL_IN_USE_FIELD_NUMBER: _ClassVar[int]
    ON_DEMAND_FIELD_NUMBER: _ClassVar[int]
    RESTART_COUNT_FIELD_NUMBER: _ClassVar[int]
    KICK_ON_START_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_NOTES_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: str
    parent: str
    source: AgentSource
    state: HarnessState
    state_time: _timestamp_pb2.Timestamp
    running: bool
    status_text: str
    status_time: _timestamp_pb2.Timestamp
    model: str
    context_tokens: int
    context_window_tokens: int
    hive_name: str
    swarm_name: str
    revision: str
    policy: Policy
    park: _turn_pb2.Park
    retired: bool
    ready_count: int
    dead_count: int
    isolation: Isolation
    open_turn_ids: _containers.RepeatedScalarFieldContainer[int]
    context_time: _timestamp_pb2.Timestamp
    available_models: _containers.RepeatedScalarFieldContainer[str]
    stopped: bool
    model_in_use: str
    on_demand: bool
    restart_count: int
    kick_on_start: KickOnStart
    isolation_notes: _containers.RepeatedScalarFieldContainer[str]
    etag: str
    def __init__(self, name: _Optional[str] = ..., role: _Optional[str] = ..., parent: _Optional[str] = ..., source: _Optional[_Union[AgentSource, str]] = ..., state: _Optional[_Union[HarnessState, str]] = ..., state_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., running: _Optional[bool] = ..., status_text: _Optional[str] = ..., status_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., model: _Optional[str] = ..., context_tokens: _Optional[int] = ..., context_window_tokens: _Optional[int] = ..., hive_name: _Optional[str] = ..., swarm_name: _Optional[str] = ..., revision: _Optional[str] = ..., policy: _Optional[_Union[Policy, _Mapping]] = ..., park: _Optional[_Union[_turn_pb2.Park, _Mapping]] = ..., retired: _Optional[bool] = ..., ready_count: _Optional[int] = ..., dead_count: _Optional[int] = ..., isolation: _Optional[_Union[Isolation, str]] = ..., open_turn_ids: _Optional[_Iterable[int]] = ..., context_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., available_models: _Optional[_Iterable[str]] = ..., stopped: _Optional[bool] = ..., model_in_use: _Optional[str] = ..., on_demand: _Optional[bool] = ..., restart_count: _Optional[int] = ..., kick_on_start: _Optional[_Union[KickOnStart, str]] = ..., isolation_notes: _Optional[_Iterable[str]] = ..., etag: _Optional[str] = ...) -> None: ...
