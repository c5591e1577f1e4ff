import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import agent_pb2 as _agent_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ActionRunState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACTION_RUN_STATE_UNSPECIFIED: _ClassVar[ActionRunState]
    ACTION_RUN_STATE_QUEUED: _ClassVar[ActionRunState]
    ACTION_RUN_STATE_RUNNING: _ClassVar[ActionRunState]
    ACTION_RUN_STATE_DONE: _ClassVar[ActionRunState]
    ACTION_RUN_STATE_FAILED: _ClassVar[ActionRunState]
ACTION_RUN_STATE_UNSPECIFIED: ActionRunState
ACTION_RUN_STATE_QUEUED: ActionRunState
ACTION_RUN_STATE_RUNNING: ActionRunState
ACTION_RUN_STATE_DONE: ActionRunState
ACTION_RUN_STATE_FAILED: ActionRunState

class Effect(_message.Message):
    __slots__ = ("create_agent", "retire_agent", "set_agent", "set_policy", "run_action", "create_schedule", "change_schedule")
    CREATE_AGENT_FIELD_NUMBER: _ClassVar[int]
    RETIRE_AGENT_FIELD_NUMBER: _ClassVar[int]
    SET_AGENT_FIELD_NUMBER: _ClassVar[int]
    SET_POLICY_FIELD_NUMBER: _ClassVar[int]
    RUN_ACTION_FIELD_NUMBER: _ClassVar[int]
    CREATE_SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    CHANGE_SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    create_agent: CreateAgentEffect
    retire_agent: RetireAgentEffect
    set_agent: SetAgentEffect
    set_policy: SetPolicyEffect
    run_action: RunActionEffect
    create_schedule: CreateScheduleEffect
    change_schedule: ChangeScheduleEffect
    def __init__(self, create_agent: _Optional[_Union[CreateAgentEffect, _Mapping]] = ..., retire_agent: _Optional[_Union[RetireAgentEffect, _Mapping]] = ..., set_agent: _Optional[_Union[SetAgentEffect, _Mapping]] = ..., set_policy: _Optional[_Union[SetPolicyEffect, _Mapping]] = ..., run_action: _Optional[_Union[RunActionEffect, _Mapping]] = ..., create_schedule: _Optional[_Union[CreateScheduleEffect, _Mapping]] = ..., change_schedule: _Optional[_Union[ChangeScheduleEffect, _Mapping]] = ...) -> None: ...

class CreateAgentEffect(_message.Message):
    __slots__ = ("name", "role", "model", "policy")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: str
    model: str
    policy: _agent_pb2.Policy
    def __init__(self, name: _Optional[str] = ..., role: _Optional[str] = ..., model: _Optional[str] = ..., policy: _Optional[_Union[_agent_pb2.Policy, _Mapping]] = ...) -> None: ...

class RetireAgentEffect(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class SetAgentEffect(_message.Message):
    __slots__ = ("name", "role", "model")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: str
    model: str
    def __init__(self, name: _Optional[str] = ..., role: _Optional[str] = ..., model: _Optional[str] = ...) -> None: ...

class SetPolicyEffect(_message.Message):
    __slots__ = ("name", "policy", "update_mask")
    NAME_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    name: str
    policy: _agent_pb2.Policy
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, name: _Optional[str] = ..., policy: _Optional[_Union[_agent_pb2.Policy, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class RunActionEffect(_message.Message):
    __slots__ = ("action", "args")
    class ArgsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ACTION_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    action: str
    args: _containers.ScalarMap[str, str]
    def __init__(self, action: _Optional[str] = ..., args: _Optional[_Mapping[str, str]] = ...) -> None: ...

class CreateScheduleEffect(_message.Message):
    __slots__ = ("body", "targets", "first_time", "interval", "zone", "late_max")
    BODY_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    FIRST_TIME_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    LATE_MAX_FIELD_NUMBER: _ClassVar[int]
    body: str
    targets: _containers.RepeatedScalarFieldContainer[str]
    first_time: _timestamp_pb2.Timestamp
    interval: _duration_pb2.Duration
    zone: str
    late_max: _duration_pb2.Duration
    def __init__(self, body: _Optional[str] = ..., targets: _Optional[_Iterable[str]] = ..., first_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., zone: _Optional[str] = ..., late_max: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ChangeScheduleEffect(_message.Message):
    __slots__ = ("schedule_id", "body", "targets_add", "targets_remove", "first_time", "interval", "zone", "late_max")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    TARGETS_ADD_FIELD_NUMBER: _ClassVar[int]
    TARGETS_REMOVE_FIELD_NUMBER: _ClassVar[int]
    FIRST_TIME_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    LATE_MAX_FIELD_NUMBER: _ClassVar[int]
    schedule_id: int
    body: str
    targets_add: _containers.RepeatedScalarFieldContainer[str]
    targets_remove: _containers.RepeatedScalarFieldContainer[str]
    first_time: _timestamp_pb2.Timestamp
    interval: _duration_pb2.Duration
    zone: str
    late_max: _duration_pb2.Duration
    def __init__(self, schedule_id: _Optional[int] = ..., body: _Optional[str] = ..., targets_add: _Optional[_Iterable[str]] = ..., targets_remove: _Optional[_Iterable[str]] = ..., first_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., zone: _Optional[str] = ..., late_max: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class EffectChange(_message.Message):
    __slots__ = ("field", "before", "after", "exceeds")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    EXCEEDS_FIELD_NUMBER: _ClassVar[int]
    field: str
    before: str
    after: str
    exceeds: str
    def __init__(self, field: _Optional[str] = ..., before: _Optional[str] = ..., after: _Optional[str] = ..., exceeds: _Optional[str] = ...) -> None: ...

class Approval(_message.Message):
    __slots__ = ("effect", "changes", "diff_digest", "problem", "run")
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    DIFF_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    effect: Effect
    changes: _containers.RepeatedCompositeFieldContainer[EffectChange]
    diff_digest: str
    problem: str
    run: ActionRun
    def __init__(self, effect: _Optional[_Union[Effect, _Mapping]] = ..., changes: _Optional[_Iterable[_Union[EffectChange, _Mapping]]] = ..., diff_digest: _Optional[str] = ..., problem: _Optional[str] = ..., run: _Optional[_Union[ActionRun, _Mapping]] = ...) -> None: ...

class ActionRun(_message.Message):
    __slots__ = ("state", "runs", "detail")
    STATE_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    state: ActionRunState
    runs: int
    detail: str
    def __init__(self, state: _Optional[_Union[ActionRunState, str]] = ..., runs: _Optional[int] = ..., detail: _Optional[str] = ...) -> None: ...
