import datetime

from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import agent_pb2 as _agent_pb2
from . import command_pb2 as _command_pb2
from . import delivery_pb2 as _delivery_pb2
from . import login_pb2 as _login_pb2
from . import schedule_pb2 as _schedule_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PauseScheduleRequest(_message.Message):
    __slots__ = ("request_id", "schedule_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    schedule_id: int
    def __init__(self, request_id: _Optional[str] = ..., schedule_id: _Optional[int] = ...) -> None: ...

class PauseScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: _schedule_pb2.Schedule
    def __init__(self, schedule: _Optional[_Union[_schedule_pb2.Schedule, _Mapping]] = ...) -> None: ...

class ResumeScheduleRequest(_message.Message):
    __slots__ = ("request_id", "schedule_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    schedule_id: int
    def __init__(self, request_id: _Optional[str] = ..., schedule_id: _Optional[int] = ...) -> None: ...

class ResumeScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: _schedule_pb2.Schedule
    def __init__(self, schedule: _Optional[_Union[_schedule_pb2.Schedule, _Mapping]] = ...) -> None: ...

class CreateAgentRequest(_message.Message):
    __slots__ = ("request_id", "name", "parent", "role", "model", "policy", "adopt")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    ADOPT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    parent: str
    role: str
    model: str
    policy: _agent_pb2.Policy
    adopt: bool
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ..., parent: _Optional[str] = ..., role: _Optional[str] = ..., model: _Optional[str] = ..., policy: _Optional[_Union[_agent_pb2.Policy, _Mapping]] = ..., adopt: _Optional[bool] = ...) -> None: ...

class CreateAgentResponse(_message.Message):
    __slots__ = ("agent", "socket_path")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SOCKET_PATH_FIELD_NUMBER: _ClassVar[int]
    agent: _agent_pb2.Agent
    socket_path: str
    def __init__(self, agent: _Optional[_Union[_agent_pb2.Agent, _Mapping]] = ..., socket_path: _Optional[str] = ...) -> None: ...

class RetireAgentRequest(_message.Message):
    __slots__ = ("request_id", "name", "purge", "etag")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PURGE_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    purge: bool
    etag: str
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ..., purge: _Optional[bool] = ..., etag: _Optional[str] = ...) -> None: ...

class RetireAgentResponse(_message.Message):
    __slots__ = ("kept_count", "dropped_count", "purge_id")
    KEPT_COUNT_FIELD_NUMBER: _ClassVar[int]
    DROPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    PURGE_ID_FIELD_NUMBER: _ClassVar[int]
    kept_count: int
    dropped_count: int
    purge_id: int
    def __init__(self, kept_count: _Optional[int] = ..., dropped_count: _Optional[int] = ..., purge_id: _Optional[int] = ...) -> None: ...

class StopAgentRequest(_message.Message):
    __slots__ = ("request_id", "name", "etag")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    etag: str
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class StopAgentResponse(_message.Message):
    __slots__ = ("agent",)
    AGENT_FIELD_NUMBER: _ClassVar[int]
    agent: _agent_pb2.Agent
    def __init__(self, agent: _Optional[_Union[_agent_pb2.Agent, _Mapping]] = ...) -> None: ...

class StartAgentRequest(_message.Message):
    __slots__ = ("request_id", "name", "etag", "on_demand")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    ON_DEMAND_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    etag: str
    on_demand: bool
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ..., etag: _Optional[str] = ..., on_demand: _Optional[bool] = ...) -> None: ...

class StartAgentResponse(_message.Message):
    __slots__ = ("agent",)
    AGENT_FIELD_NUMBER: _ClassVar[int]
    agent: _agent_pb2.Agent
    def __init__(self, agent: _Optional[_Union[_agent_pb2.Agent, _Mapping]] = ...) -> None: ...

class ListPurgesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListPurgesResponse(_message.Message):
    __slots__ = ("purges", "next_page_token")
    PURGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    purges: _containers.RepeatedCompositeFieldContainer[Purge]
    next_page_token: str
    def __init__(self, purges: _Optional[_Iterable[_Union[Purge, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Purge(_message.Message):
    __slots__ = ("id", "name", "purge_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PURGE_TIME_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    purge_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., purge_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class FinishPurgeRequest(_message.Message):
    __slots__ = ("request_id", "purge_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PURGE_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    purge_id: int
    def __init__(self, request_id: _Optional[str] = ..., purge_id: _Optional[int] = ...) -> None: ...

class FinishPurgeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SetParentRequest(_message.Message):
    __slots__ = ("request_id", "name", "parent", "etag")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    parent: str
    etag: str
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ..., parent: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class SetParentResponse(_message.Message):
    __slots__ = ("agent",)
    AGENT_FIELD_NUMBER: _ClassVar[int]
    agent: _agent_pb2.Agent
    def __init__(self, agent: _Optional[_Union[_agent_pb2.Agent, _Mapping]] = ...) -> None: ...

class SetPolicyRequest(_message.Message):
    __slots__ = ("request_id", "name", "policy", "update_mask")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    policy: _agent_pb2.Policy
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ..., policy: _Optional[_Union[_agent_pb2.Policy, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class SetPolicyResponse(_message.Message):
    __slots__ = ("agent",)
    AGENT_FIELD_NUMBER: _ClassVar[int]
    agent: _agent_pb2.Agent
    def __init__(self, agent: _Optional[_Union[_agent_pb2.Agent, _Mapping]] = ...) -> None: ...

class ListDeadLettersRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "agent")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    agent: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., agent: _Optional[str] = ...) -> None: ...

class ListDeadLettersResponse(_message.Message):
    __slots__ = ("deliveries", "next_page_token")
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    deliveries: _containers.RepeatedCompositeFieldContainer[_delivery_pb2.Delivery]
    next_page_token: str
    def __init__(self, deliveries: _Optional[_Iterable[_Union[_delivery_pb2.Delivery, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RedriveDeliveryRequest(_message.Message):
    __slots__ = ("request_id", "key")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    key: _delivery_pb2.DeliveryKey
    def __init__(self, request_id: _Optional[str] = ..., key: _Optional[_Union[_delivery_pb2.DeliveryKey, _Mapping]] = ...) -> None: ...

class RedriveDeliveryResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DropDeliveryRequest(_message.Message):
    __slots__ = ("request_id", "key")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    key: _delivery_pb2.DeliveryKey
    def __init__(self, request_id: _Optional[str] = ..., key: _Optional[_Union[_delivery_pb2.DeliveryKey, _Mapping]] = ...) -> None: ...

class DropDeliveryResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReleaseDeliveryRequest(_message.Message):
    __slots__ = ("request_id", "key")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    key: _delivery_pb2.DeliveryKey
    def __init__(self, request_id: _Optional[str] = ..., key: _Optional[_Union[_delivery_pb2.DeliveryKey, _Mapping]] = ...) -> None: ...

class ReleaseDeliveryResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SendCommandRequest(_message.Message):
    __slots__ = ("request_id", "agent", "command")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    agent: str
    command: _command_pb2.Command
    def __init__(self, request_id: _Optional[str] = ..., agent: _Optional[str] = ..., command: _Optional[_Union[_command_pb2.Command, _Mapping]] = ...) -> None: ...

class SendCommandResponse(_message.Message):
    __slots__ = ("command_id",)
    COMMAND_ID_FIELD_NUMBER: _ClassVar[int]
    command_id: int
    def __init__(self, command_id: _Optional[int] = ...) -> None: ...

class GetBrokerStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetBrokerStatusResponse(_message.Message):
    __slots__ = ("version", "pid", "start_time", "storage_ok", "storage_error", "database_path", "database_bytes", "agent_count", "attached_count", "ready_count", "leased_count", "held_count", "dead_count", "operator_unread_count", "not_isolated_agents", "last_event_sequence", "draining", "operator_question_count", "open_question_count", "pending_reminder_count", "partly_isolated_agents", "isolation_accepted_agents", "background_tasks", "launcher_attached")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    STORAGE_OK_FIELD_NUMBER: _ClassVar[int]
    STORAGE_ERROR_FIELD_NUMBER: _ClassVar[int]
    DATABASE_PATH_FIELD_NUMBER: _ClassVar[int]
    DATABASE_BYTES_FIELD_NUMBER: _ClassVar[int]
    AGENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    READY_COUNT_FIELD_NUMBER: _ClassVar[int]
    LEASED_COUNT_FIELD_NUMBER: _ClassVar[int]
    HELD_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEAD_COUNT_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_UNREAD_COUNT_FIELD_NUMBER: _ClassVar[int]
    NOT_ISOLATED_AGENTS_FIELD_NUMBER: _ClassVar[int]
    LAST_EVENT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_QUESTION_COUNT_FIELD_NUMBER: _ClassVar[int]
    OPEN_QUESTION_COUNT_FIELD_NUMBER: _ClassVar[int]
    PENDING_REMINDER_COUNT_FIELD_NUMBER: _ClassVar[int]
    PARTLY_ISOLATED_AGENTS_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_ACCEPTED_AGENTS_FIELD_NUMBER: _ClassVar[int]
    BACKGROUND_TASKS_FIELD_NUMBER: _ClassVar[int]
    LAUNCHER_ATTACHED_FIELD_NUMBER: _ClassVar[int]
    version: str
    pid: int
    start_time: _timestamp_pb2.Timestamp
    storage_ok: bool
    storage_error: str
    database_path: str
    database_bytes: int
    agent_count: int
    attached_count: int
    ready_count: int
    leased_count: int
    held_count: int
    dead_count: int
    operator_unread_count: int
    not_isolated_agents: _containers.RepeatedScalarFieldContainer[str]
    last_event_sequence: int
    draining: bool
    operator_question_count: int
    open_question_count: int
    pending_reminder_count: int
    partly_isolated_agents: _containers.RepeatedScalarFieldContainer[str]
    isolation_accepted_agents: _containers.RepeatedScalarFieldContainer[str]
    background_tasks: _containers.RepeatedCompositeFieldContainer[BackgroundTask]
    launcher_attached: bool
    def __init__(self, version: _Optional[str] = ..., pid: _Optional[int] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., storage_ok: _Optional[bool] = ..., storage_error: _Optional[str] = ..., database_path: _Optional[str] = ..., database_bytes: _Optional[int] = ..., agent_count: _Optional[int] = ..., attached_count: _Optional[int] = ..., ready_count: _Optional[int] = ..., leased_count: _Optional[int] = ..., held_count: _Optional[int] = ..., dead_count: _Optional[int] = ..., operator_unread_count: _Optional[int] = ..., not_isolated_agents: _Optional[_Iterable[str]] = ..., last_event_sequence: _Optional[int] = ..., draining: _Optional[bool] = ..., operator_question_count: _Optional[int] = ..., open_question_count: _Optional[int] = ..., pending_reminder_count: _Optional[int] = ..., partly_isolated_agents: _Optional[_Iterable[str]] = ..., isolation_accepted_agents: _Optional[_Iterable[str]] = ..., background_tasks: _Optional[_Iterable[_Union[BackgroundTask, _Mapping]]] = ..., launcher_attached: _Optional[bool] = ...) -> None: ...

class BackgroundTask(_message.Message):
    __slots__ = ("name", "last_run_time", "failure_count", "error")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LAST_RUN_TIME_FIELD_NUMBER: _ClassVar[int]
    FAILURE_COUNT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    name: str
    last_run_time: _timestamp_pb2.Timestamp
    failure_count: int
    error: str
    def __init__(self, name: _Optional[str] = ..., last_run_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., failure_count: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DrainResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BackupRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BackupResponse(_message.Message):
    __slots__ = ("chunk", "total_bytes")
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    chunk: bytes
    total_bytes: int
    def __init__(self, chunk: _Optional[bytes] = ..., total_bytes: _Optional[int] = ...) -> None: ...

class CheckIntegrityRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CheckIntegrityResponse(_message.Message):
    __slots__ = ("problems", "page_count")
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    PAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    problems: _containers.RepeatedScalarFieldContainer[str]
    page_count: int
    def __init__(self, problems: _Optional[_Iterable[str]] = ..., page_count: _Optional[int] = ...) -> None: ...

class LoginRequest(_message.Message):
    __slots__ = ("start", "input", "terminal")
    START_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_FIELD_NUMBER: _ClassVar[int]
    start: LoginStart
    input: bytes
    terminal: _login_pb2.Terminal
    def __init__(self, start: _Optional[_Union[LoginStart, _Mapping]] = ..., input: _Optional[bytes] = ..., terminal: _Optional[_Union[_login_pb2.Terminal, _Mapping]] = ...) -> None: ...

class LoginStart(_message.Message):
    __slots__ = ("agent", "terminal")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_FIELD_NUMBER: _ClassVar[int]
    agent: str
    terminal: _login_pb2.Terminal
    def __init__(self, agent: _Optional[str] = ..., terminal: _Optional[_Union[_login_pb2.Terminal, _Mapping]] = ...) -> None: ...

class LoginResponse(_message.Message):
    __slots__ = ("output", "end")
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    output: bytes
    end: _login_pb2.LoginEnd
    def __init__(self, output: _Optional[bytes] = ..., end: _Optional[_Union[_login_pb2.LoginEnd, _Mapping]] = ...) -> None: ...
