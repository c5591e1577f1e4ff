import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import agent_pb2 as _agent_pb2
from . import command_pb2 as _command_pb2
from . import delivery_pb2 as _delivery_pb2
from . import login_pb2 as _login_pb2
from . import message_pb2 as _message_pb2
from . import question_pb2 as _question_pb2
from . import reminder_pb2 as _reminder_pb2
from . import turn_pb2 as _turn_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AttachRequest(_message.Message):
    __slots__ = ("take_over", "revision")
    TAKE_OVER_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    take_over: bool
    revision: str
    def __init__(self, take_over: _Optional[bool] = ..., revision: _Optional[str] = ...) -> None: ...

class Attached(_message.Message):
    __slots__ = ("session_token", "session_epoch", "resumed", "agent", "open_turns", "operator_pronouns", "hive_domain", "kin", "park_backoff", "leave_after")
    SESSION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SESSION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    OPEN_TURNS_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_PRONOUNS_FIELD_NUMBER: _ClassVar[int]
    HIVE_DOMAIN_FIELD_NUMBER: _ClassVar[int]
    KIN_FIELD_NUMBER: _ClassVar[int]
    PARK_BACKOFF_FIELD_NUMBER: _ClassVar[int]
    LEAVE_AFTER_FIELD_NUMBER: _ClassVar[int]
    session_token: str
    session_epoch: int
    resumed: bool
    agent: _agent_pb2.Agent
    open_turns: _containers.RepeatedCompositeFieldContainer[_turn_pb2.Turn]
    operator_pronouns: str
    hive_domain: str
    kin: Kin
    park_backoff: Backoff
    leave_after: _duration_pb2.Duration
    def __init__(self, session_token: _Optional[str] = ..., session_epoch: _Optional[int] = ..., resumed: _Optional[bool] = ..., agent: _Optional[_Union[_agent_pb2.Agent, _Mapping]] = ..., open_turns: _Optional[_Iterable[_Union[_turn_pb2.Turn, _Mapping]]] = ..., operator_pronouns: _Optional[str] = ..., hive_domain: _Optional[str] = ..., kin: _Optional[_Union[Kin, _Mapping]] = ..., park_backoff: _Optional[_Union[Backoff, _Mapping]] = ..., leave_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Backoff(_message.Message):
    __slots__ = ("base", "max")
    BASE_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    base: _duration_pb2.Duration
    max: _duration_pb2.Duration
    def __init__(self, base: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Kin(_message.Message):
    __slots__ = ("parent_role", "children", "children_count")
    PARENT_ROLE_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_COUNT_FIELD_NUMBER: _ClassVar[int]
    parent_role: str
    children: _containers.RepeatedCompositeFieldContainer[Child]
    children_count: int
    def __init__(self, parent_role: _Optional[str] = ..., children: _Optional[_Iterable[_Union[Child, _Mapping]]] = ..., children_count: _Optional[int] = ...) -> None: ...

class Child(_message.Message):
    __slots__ = ("name", "role")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: str
    def __init__(self, name: _Optional[str] = ..., role: _Optional[str] = ...) -> None: ...

class AttachResponse(_message.Message):
    __slots__ = ("attached", "command", "agent_changed", "login_wanted", "kin_changed")
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    AGENT_CHANGED_FIELD_NUMBER: _ClassVar[int]
    LOGIN_WANTED_FIELD_NUMBER: _ClassVar[int]
    KIN_CHANGED_FIELD_NUMBER: _ClassVar[int]
    attached: Attached
    command: _command_pb2.Command
    agent_changed: _agent_pb2.Agent
    login_wanted: LoginWanted
    kin_changed: Kin
    def __init__(self, attached: _Optional[_Union[Attached, _Mapping]] = ..., command: _Optional[_Union[_command_pb2.Command, _Mapping]] = ..., agent_changed: _Optional[_Union[_agent_pb2.Agent, _Mapping]] = ..., login_wanted: _Optional[_Union[LoginWanted, _Mapping]] = ..., kin_changed: _Optional[_Union[Kin, _Mapping]] = ...) -> None: ...

class AckCommandRequest(_message.Message):
    __slots__ = ("command_id", "error")
    COMMAND_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    command_id: int
    error: str
    def __init__(self, command_id: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class AckCommandResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BeginTurnRequest(_message.Message):
    __slots__ = ("request_id", "process_token", "conversation", "kind")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    process_token: str
    conversation: str
    kind: _turn_pb2.TurnKind
    def __init__(self, request_id: _Optional[str] = ..., process_token: _Optional[str] = ..., conversation: _Optional[str] = ..., kind: _Optional[_Union[_turn_pb2.TurnKind, str]] = ...) -> None: ...

class BeginTurnResponse(_message.Message):
    __slots__ = ("turn", "delivery", "pending_count", "already_sent", "already_asked", "already_reminded", "commands")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    ALREADY_SENT_FIELD_NUMBER: _ClassVar[int]
    ALREADY_ASKED_FIELD_NUMBER: _ClassVar[int]
    ALREADY_REMINDED_FIELD_NUMBER: _ClassVar[int]
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    turn: _turn_pb2.Turn
    delivery: _delivery_pb2.Delivery
    pending_count: int
    already_sent: _containers.RepeatedCompositeFieldContainer[_message_pb2.Message]
    already_asked: _containers.RepeatedCompositeFieldContainer[_question_pb2.Question]
    already_reminded: _containers.RepeatedCompositeFieldContainer[_reminder_pb2.Reminder]
    commands: _containers.RepeatedCompositeFieldContainer[_command_pb2.Command]
    def __init__(self, turn: _Optional[_Union[_turn_pb2.Turn, _Mapping]] = ..., delivery: _Optional[_Union[_delivery_pb2.Delivery, _Mapping]] = ..., pending_count: _Optional[int] = ..., already_sent: _Optional[_Iterable[_Union[_message_pb2.Message, _Mapping]]] = ..., already_asked: _Optional[_Iterable[_Union[_question_pb2.Question, _Mapping]]] = ..., already_reminded: _Optional[_Iterable[_Union[_reminder_pb2.Reminder, _Mapping]]] = ..., commands: _Optional[_Iterable[_Union[_command_pb2.Command, _Mapping]]] = ...) -> None: ...

class RequestNextTurnRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RequestNextTurnResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("open_turn_ids",)
    OPEN_TURN_IDS_FIELD_NUMBER: _ClassVar[int]
    open_turn_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, open_turn_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class ReportTurnEventsRequest(_message.Message):
    __slots__ = ("turn_id", "events")
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    turn_id: int
    events: _containers.RepeatedCompositeFieldContainer[_turn_pb2.TurnEvent]
    def __init__(self, turn_id: _Optional[int] = ..., events: _Optional[_Iterable[_Union[_turn_pb2.TurnEvent, _Mapping]]] = ...) -> None: ...

class ReportTurnEventsResponse(_message.Message):
    __slots__ = ("kept_count",)
    KEPT_COUNT_FIELD_NUMBER: _ClassVar[int]
    kept_count: int
    def __init__(self, kept_count: _Optional[int] = ...) -> None: ...

class EndTurnRequest(_message.Message):
    __slots__ = ("request_id", "turn_id", "outcome", "error", "output_tail", "returned_tool_use_ids", "usage", "model", "context_tokens", "context_window_tokens", "compacted", "retry_time", "tool_uses")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TAIL_FIELD_NUMBER: _ClassVar[int]
    RETURNED_TOOL_USE_IDS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_WINDOW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPACTED_FIELD_NUMBER: _ClassVar[int]
    RETRY_TIME_FIELD_NUMBER: _ClassVar[int]
    TOOL_USES_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    turn_id: int
    outcome: _turn_pb2.TurnOutcome
    error: str
    output_tail: str
    returned_tool_use_ids: _containers.RepeatedScalarFieldContainer[str]
    usage: _turn_pb2.TurnUsage
    model: str
    context_tokens: int
    context_window_tokens: int
    compacted: bool
    retry_time: _timestamp_pb2.Timestamp
    tool_uses: _containers.RepeatedCompositeFieldContainer[_turn_pb2.ToolUse]
    def __init__(self, request_id: _Optional[str] = ..., turn_id: _Optional[int] = ..., outcome: _Optional[_Union[_turn_pb2.TurnOutcome, str]] = ..., error: _Optional[str] = ..., output_tail: _Optional[str] = ..., returned_tool_use_ids: _Optional[_Iterable[str]] = ..., usage: _Optional[_Union[_turn_pb2.TurnUsage, _Mapping]] = ..., model: _Optional[str] = ..., context_tokens: _Optional[int] = ..., context_window_tokens: _Optional[int] = ..., compacted: _Optional[bool] = ..., retry_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tool_uses: _Optional[_Iterable[_Union[_turn_pb2.ToolUse, _Mapping]]] = ...) -> None: ...

class EndTurnResponse(_message.Message):
    __slots__ = ("acked_count", "returned_count", "dead_count", "held_count", "pending_count", "next_turn_requested", "park")
    ACKED_COUNT_FIELD_NUMBER: _ClassVar[int]
    RETURNED_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEAD_COUNT_FIELD_NUMBER: _ClassVar[int]
    HELD_COUNT_FIELD_NUMBER: _ClassVar[int]
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    NEXT_TURN_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    PARK_FIELD_NUMBER: _ClassVar[int]
    acked_count: int
    returned_count: int
    dead_count: int
    held_count: int
    pending_count: int
    next_turn_requested: bool
    park: _turn_pb2.Park
    def __init__(self, acked_count: _Optional[int] = ..., returned_count: _Optional[int] = ..., dead_count: _Optional[int] = ..., held_count: _Optional[int] = ..., pending_count: _Optional[int] = ..., next_turn_requested: _Optional[bool] = ..., park: _Optional[_Union[_turn_pb2.Park, _Mapping]] = ...) -> None: ...

class ReportProblemRequest(_message.Message):
    __slots__ = ("request_id", "subject", "text")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    subject: str
    text: str
    def __init__(self, request_id: _Optional[str] = ..., subject: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class ReportProblemResponse(_message.Message):
    __slots__ = ("message_id",)
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    message_id: int
    def __init__(self, message_id: _Optional[int] = ...) -> None: ...

class ReportHarnessStatusRequest(_message.Message):
    __slots__ = ("state", "until_time")
    STATE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_TIME_FIELD_NUMBER: _ClassVar[int]
    state: _agent_pb2.HarnessState
    until_time: _timestamp_pb2.Timestamp
    def __init__(self, state: _Optional[_Union[_agent_pb2.HarnessState, str]] = ..., until_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ReportHarnessStatusResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LeaveRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LeaveResponse(_message.Message):
    __slots__ = ("left",)
    LEFT_FIELD_NUMBER: _ClassVar[int]
    left: bool
    def __init__(self, left: _Optional[bool] = ...) -> None: ...

class LoginWanted(_message.Message):
    __slots__ = ("login_id", "terminal")
    LOGIN_ID_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_FIELD_NUMBER: _ClassVar[int]
    login_id: int
    terminal: _login_pb2.Terminal
    def __init__(self, login_id: _Optional[int] = ..., terminal: _Optional[_Union[_login_pb2.Terminal, _Mapping]] = ...) -> None: ...

class ServeLoginRequest(_message.Message):
    __slots__ = ("start", "output", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: ServeLoginStart
    output: bytes
    end: _login_pb2.LoginEnd
    def __init__(self, start: _Optional[_Union[ServeLoginStart, _Mapping]] = ..., output: _Optional[bytes] = ..., end: _Optional[_Union[_login_pb2.LoginEnd, _Mapping]] = ...) -> None: ...

class ServeLoginStart(_message.Message):
    __slots__ = ("login_id",)
    LOGIN_ID_FIELD_NUMBER: _ClassVar[int]
    login_id: int
    def __init__(self, login_id: _Optional[int] = ...) -> None: ...

class ServeLoginResponse(_message.Message):
    __slots__ = ("input", "terminal")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_FIELD_NUMBER: _ClassVar[int]
    input: bytes
    terminal: _login_pb2.Terminal
    def __init__(self, input: _Optional[bytes] = ..., terminal: _Optional[_Union[_login_pb2.Terminal, _Mapping]] = ...) -> None: ...
