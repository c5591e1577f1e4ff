import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import agent_pb2 as _agent_pb2
from . import command_pb2 as _command_pb2
from . import delivery_pb2 as _delivery_pb2
from . import reason_pb2 as _reason_pb2
from . import turn_pb2 as _turn_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EventKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_KIND_UNSPECIFIED: _ClassVar[EventKind]
    EVENT_KIND_MESSAGE_ACCEPTED: _ClassVar[EventKind]
    EVENT_KIND_DELIVERY_LEASED: _ClassVar[EventKind]
    EVENT_KIND_DELIVERY_ACKED: _ClassVar[EventKind]
    EVENT_KIND_DELIVERY_RETURNED: _ClassVar[EventKind]
    EVENT_KIND_DELIVERY_DEAD: _ClassVar[EventKind]
    EVENT_KIND_DELIVERY_HELD: _ClassVar[EventKind]
    EVENT_KIND_DELIVERY_RELEASED: _ClassVar[EventKind]
    EVENT_KIND_DELIVERY_REDRIVEN: _ClassVar[EventKind]
    EVENT_KIND_DELIVERY_DROPPED: _ClassVar[EventKind]
    EVENT_KIND_DELIVERY_SUPERSEDED: _ClassVar[EventKind]
    EVENT_KIND_TURN_BEGUN: _ClassVar[EventKind]
    EVENT_KIND_TURN_ENDED: _ClassVar[EventKind]
    EVENT_KIND_HARNESS_ATTACHED: _ClassVar[EventKind]
    EVENT_KIND_HARNESS_LOST: _ClassVar[EventKind]
    EVENT_KIND_AGENT_CREATED: _ClassVar[EventKind]
    EVENT_KIND_AGENT_CHANGED: _ClassVar[EventKind]
    EVENT_KIND_AGENT_RETIRED: _ClassVar[EventKind]
    EVENT_KIND_STATUS_CHANGED: _ClassVar[EventKind]
    EVENT_KIND_AGENT_PARKED: _ClassVar[EventKind]
    EVENT_KIND_COMMAND_GIVEN: _ClassVar[EventKind]
    EVENT_KIND_COMMAND_CLOSED: _ClassVar[EventKind]
    EVENT_KIND_REFUSED: _ClassVar[EventKind]
    EVENT_KIND_QUESTION_ASKED: _ClassVar[EventKind]
    EVENT_KIND_QUESTION_ANSWERED: _ClassVar[EventKind]
    EVENT_KIND_QUESTION_EXPIRED: _ClassVar[EventKind]
    EVENT_KIND_QUESTION_CANCELLED: _ClassVar[EventKind]
    EVENT_KIND_REMINDER_SET: _ClassVar[EventKind]
    EVENT_KIND_REMINDER_FIRED: _ClassVar[EventKind]
    EVENT_KIND_REMINDER_CANCELLED: _ClassVar[EventKind]
    EVENT_KIND_HARNESS_STATE_CHANGED: _ClassVar[EventKind]
    EVENT_KIND_AGENT_STOPPED: _ClassVar[EventKind]
    EVENT_KIND_AGENT_STARTED: _ClassVar[EventKind]
    EVENT_KIND_AGENT_PURGED: _ClassVar[EventKind]
    EVENT_KIND_PURGE_FINISHED: _ClassVar[EventKind]
    EVENT_KIND_LOG_BEGUN: _ClassVar[EventKind]
    EVENT_KIND_RESTART_REQUESTED: _ClassVar[EventKind]
    EVENT_KIND_HARNESS_CRASHED: _ClassVar[EventKind]
    EVENT_KIND_LOGS_READ: _ClassVar[EventKind]
    EVENT_KIND_ACTION_BEGUN: _ClassVar[EventKind]
    EVENT_KIND_ACTION_ENDED: _ClassVar[EventKind]
    EVENT_KIND_SCHEDULE_CREATED: _ClassVar[EventKind]
    EVENT_KIND_SCHEDULE_CHANGED: _ClassVar[EventKind]
    EVENT_KIND_SCHEDULE_FIRED: _ClassVar[EventKind]
    EVENT_KIND_SCHEDULE_ENDED: _ClassVar[EventKind]

class Settler(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SETTLER_UNSPECIFIED: _ClassVar[Settler]
    SETTLER_HOLDER: _ClassVar[Settler]
    SETTLER_OPERATOR: _ClassVar[Settler]

class HarnessLoss(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HARNESS_LOSS_UNSPECIFIED: _ClassVar[HarnessLoss]
    HARNESS_LOSS_TAKEN_OVER: _ClassVar[HarnessLoss]
    HARNESS_LOSS_STAYED_AWAY: _ClassVar[HarnessLoss]
    HARNESS_LOSS_RESTORED: _ClassVar[HarnessLoss]
    HARNESS_LOSS_LEFT: _ClassVar[HarnessLoss]

class AgentChange(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AGENT_CHANGE_UNSPECIFIED: _ClassVar[AgentChange]
    AGENT_CHANGE_MODEL: _ClassVar[AgentChange]
    AGENT_CHANGE_PARENT: _ClassVar[AgentChange]
    AGENT_CHANGE_POLICY: _ClassVar[AgentChange]
    AGENT_CHANGE_FILE: _ClassVar[AgentChange]
    AGENT_CHANGE_ROLE: _ClassVar[AgentChange]

class ScheduleChange(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCHEDULE_CHANGE_UNSPECIFIED: _ClassVar[ScheduleChange]
    SCHEDULE_CHANGE_EDITED: _ClassVar[ScheduleChange]
    SCHEDULE_CHANGE_PAUSED: _ClassVar[ScheduleChange]
    SCHEDULE_CHANGE_RESUMED: _ClassVar[ScheduleChange]
EVENT_KIND_UNSPECIFIED: EventKind
EVENT_KIND_MESSAGE_ACCEPTED: EventKind
EVENT_KIND_DELIVERY_LEASED: EventKind
EVENT_KIND_DELIVERY_ACKED: EventKind
EVENT_KIND_DELIVERY_RETURNED: EventKind
EVENT_KIND_DELIVERY_DEAD: EventKind
EVENT_KIND_DELIVERY_HELD: EventKind
EVENT_KIND_DELIVERY_RELEASED: EventKind
EVENT_KIND_DELIVERY_REDRIVEN: EventKind
EVENT_KIND_DELIVERY_DROPPED: EventKind
EVENT_KIND_DELIVERY_SUPERSEDED: EventKind
EVENT_KIND_TURN_BEGUN: EventKind
EVENT_KIND_TURN_ENDED: EventKind
EVENT_KIND_HARNESS_ATTACHED: EventKind
EVENT_KIND_HARNESS_LOST: EventKind
EVENT_KIND_AGENT_CREATED: EventKind
EVENT_KIND_AGENT_CHANGED: EventKind
EVENT_KIND_AGENT_RETIRED: EventKind
EVENT_KIND_STATUS_CHANGED: EventKind
EVENT_KIND_AGENT_PARKED: EventKind
EVENT_KIND_COMMAND_GIVEN: EventKind
EVENT_KIND_COMMAND_CLOSED: EventKind
EVENT_KIND_REFUSED: EventKind
EVENT_KIND_QUESTION_ASKED: EventKind
EVENT_KIND_QUESTION_ANSWERED: EventKind
EVENT_KIND_QUESTION_EXPIRED: EventKind
EVENT_KIND_QUESTION_CANCELLED: EventKind
EVENT_KIND_REMINDER_SET: EventKind
EVENT_KIND_REMINDER_FIRED: EventKind
EVENT_KIND_REMINDER_CANCELLED: EventKind
EVENT_KIND_HARNESS_STATE_CHANGED: EventKind
EVENT_KIND_AGENT_STOPPED: EventKind
EVENT_KIND_AGENT_STARTED: EventKind
EVENT_KIND_AGENT_PURGED: EventKind
EVENT_KIND_PURGE_FINISHED: EventKind
EVENT_KIND_LOG_BEGUN: EventKind
EVENT_KIND_RESTART_REQUESTED: EventKind
EVENT_KIND_HARNESS_CRASHED: EventKind
EVENT_KIND_LOGS_READ: EventKind
EVENT_KIND_ACTION_BEGUN: EventKind
EVENT_KIND_ACTION_ENDED: EventKind
EVENT_KIND_SCHEDULE_CREATED: EventKind
EVENT_KIND_SCHEDULE_CHANGED: EventKind
EVENT_KIND_SCHEDULE_FIRED: EventKind
EVENT_KIND_SCHEDULE_ENDED: EventKind
SETTLER_UNSPECIFIED: Settler
SETTLER_HOLDER: Settler
SETTLER_OPERATOR: Settler
HARNESS_LOSS_UNSPECIFIED: HarnessLoss
HARNESS_LOSS_TAKEN_OVER: HarnessLoss
HARNESS_LOSS_STAYED_AWAY: HarnessLoss
HARNESS_LOSS_RESTORED: HarnessLoss
HARNESS_LOSS_LEFT: HarnessLoss
AGENT_CHANGE_UNSPECIFIED: AgentChange
AGENT_CHANGE_MODEL: AgentChange
AGENT_CHANGE_PARENT: AgentChange
AGENT_CHANGE_POLICY: AgentChange
AGENT_CHANGE_FILE: AgentChange
AGENT_CHANGE_ROLE: AgentChange
SCHEDULE_CHANGE_UNSPECIFIED: ScheduleChange
SCHEDULE_CHANGE_EDITED: ScheduleChange
SCHEDULE_CHANGE_PAUSED: ScheduleChange
SCHEDULE_CHANGE_RESUMED: ScheduleChange

class DeliveryLeased(_message.Message):
    __slots__ = ("attempt", "cause")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    cause: _delivery_pb2.RedeliveryCause
    def __init__(self, attempt: _Optional[int] = ..., cause: _Optional[_Union[_delivery_pb2.RedeliveryCause, str]] = ...) -> None: ...

class DeliveryAcked(_message.Message):
    __slots__ = ("attempt", "settler")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SETTLER_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    settler: Settler
    def __init__(self, attempt: _Optional[int] = ..., settler: _Optional[_Union[Settler, str]] = ...) -> None: ...

class DeliveryReturned(_message.Message):
    __slots__ = ("attempt", "cause")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    cause: _delivery_pb2.RedeliveryCause
    def __init__(self, attempt: _Optional[int] = ..., cause: _Optional[_Union[_delivery_pb2.RedeliveryCause, str]] = ...) -> None: ...

class DeliveryDead(_message.Message):
    __slots__ = ("attempt", "cause")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    cause: _delivery_pb2.RedeliveryCause
    def __init__(self, attempt: _Optional[int] = ..., cause: _Optional[_Union[_delivery_pb2.RedeliveryCause, str]] = ...) -> None: ...

class DeliveryHeld(_message.Message):
    __slots__ = ("attempt",)
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    def __init__(self, attempt: _Optional[int] = ...) -> None: ...

class TurnBegun(_message.Message):
    __slots__ = ("kind", "session_epoch")
    KIND_FIELD_NUMBER: _ClassVar[int]
    SESSION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    kind: _turn_pb2.TurnKind
    session_epoch: int
    def __init__(self, kind: _Optional[_Union[_turn_pb2.TurnKind, str]] = ..., session_epoch: _Optional[int] = ...) -> None: ...

class TurnEnded(_message.Message):
    __slots__ = ("outcome", "session_epoch")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SESSION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    outcome: _turn_pb2.TurnOutcome
    session_epoch: int
    def __init__(self, outcome: _Optional[_Union[_turn_pb2.TurnOutcome, str]] = ..., session_epoch: _Optional[int] = ...) -> None: ...

class HarnessAttached(_message.Message):
    __slots__ = ("session_epoch",)
    SESSION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    session_epoch: int
    def __init__(self, session_epoch: _Optional[int] = ...) -> None: ...

class HarnessLost(_message.Message):
    __slots__ = ("session_epoch", "loss")
    SESSION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    session_epoch: int
    loss: HarnessLoss
    def __init__(self, session_epoch: _Optional[int] = ..., loss: _Optional[_Union[HarnessLoss, str]] = ...) -> None: ...

class AgentCreated(_message.Message):
    __slots__ = ("source",)
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    source: _agent_pb2.AgentSource
    def __init__(self, source: _Optional[_Union[_agent_pb2.AgentSource, str]] = ...) -> None: ...

class AgentChanged(_message.Message):
    __slots__ = ("change",)
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    change: AgentChange
    def __init__(self, change: _Optional[_Union[AgentChange, str]] = ...) -> None: ...

class AgentParked(_message.Message):
    __slots__ = ("cause", "until_time")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_TIME_FIELD_NUMBER: _ClassVar[int]
    cause: _turn_pb2.TurnOutcome
    until_time: _timestamp_pb2.Timestamp
    def __init__(self, cause: _Optional[_Union[_turn_pb2.TurnOutcome, str]] = ..., until_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CommandGiven(_message.Message):
    __slots__ = ("kind", "command_id")
    KIND_FIELD_NUMBER: _ClassVar[int]
    COMMAND_ID_FIELD_NUMBER: _ClassVar[int]
    kind: _command_pb2.CommandKind
    command_id: int
    def __init__(self, kind: _Optional[_Union[_command_pb2.CommandKind, str]] = ..., command_id: _Optional[int] = ...) -> None: ...

class CommandClosed(_message.Message):
    __slots__ = ("done", "command_id")
    DONE_FIELD_NUMBER: _ClassVar[int]
    COMMAND_ID_FIELD_NUMBER: _ClassVar[int]
    done: bool
    command_id: int
    def __init__(self, done: _Optional[bool] = ..., command_id: _Optional[int] = ...) -> None: ...

class CallRefused(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: _reason_pb2.Reason
    def __init__(self, reason: _Optional[_Union[_reason_pb2.Reason, str]] = ...) -> None: ...

class ReminderSet(_message.Message):
    __slots__ = ("due_time",)
    DUE_TIME_FIELD_NUMBER: _ClassVar[int]
    due_time: _timestamp_pb2.Timestamp
    def __init__(self, due_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class HarnessStateChanged(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: _agent_pb2.HarnessState
    def __init__(self, state: _Optional[_Union[_agent_pb2.HarnessState, str]] = ...) -> None: ...

class ScheduleCreated(_message.Message):
    __slots__ = ("schedule_id",)
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule_id: int
    def __init__(self, schedule_id: _Optional[int] = ...) -> None: ...

class ScheduleChanged(_message.Message):
    __slots__ = ("schedule_id", "change")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    schedule_id: int
    change: ScheduleChange
    def __init__(self, schedule_id: _Optional[int] = ..., change: _Optional[_Union[ScheduleChange, str]] = ...) -> None: ...

class ScheduleFired(_message.Message):
    __slots__ = ("schedule_id",)
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule_id: int
    def __init__(self, schedule_id: _Optional[int] = ...) -> None: ...

class ScheduleEnded(_message.Message):
    __slots__ = ("schedule_id",)
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule_id: int
    def __init__(self, schedule_id: _Optional[int] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("sequence", "kind", "time", "agent", "message_id", "turn_id", "detail", "question_id", "reminder_id", "delivery_leased", "delivery_acked", "delivery_returned", "delivery_dead", "delivery_held", "turn_begun", "turn_ended", "harness_attached", "harness_lost", "agent_created", "agent_changed", "agent_parked", "command_given", "command_closed", "refused", "reminder_set", "harness_state_changed", "schedule_created", "schedule_changed", "schedule_fired", "schedule_ended")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    QUESTION_ID_FIELD_NUMBER: _ClassVar[int]
    REMINDER_ID_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_LEASED_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_ACKED_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_RETURNED_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_DEAD_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_HELD_FIELD_NUMBER: _ClassVar[int]
    TURN_BEGUN_FIELD_NUMBER: _ClassVar[int]
    TURN_ENDED_FIELD_NUMBER: _ClassVar[int]
    HARNESS_ATTACHED_FIELD_NUMBER: _ClassVar[int]
    HARNESS_LOST_FIELD_NUMBER: _ClassVar[int]
    AGENT_CREATED_FIELD_NUMBER: _ClassVar[int]
    AGENT_CHANGED_FIELD_NUMBER: _ClassVar[int]
    AGENT_PARKED_FIELD_NUMBER: _ClassVar[int]
    COMMAND_GIVEN_FIELD_NUMBER: _ClassVar[int]
    COMMAND_CLOSED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    REMINDER_SET_FIELD_NUMBER: _ClassVar[int]
    HARNESS_STATE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_CREATED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIRED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ENDED_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    kind: EventKind
    time: _timestamp_pb2.Timestamp
    agent: str
    message_id: int
    turn_id: int
    detail: str
    question_id: int
    reminder_id: int
    delivery_leased: DeliveryLeased
    delivery_acked: DeliveryAcked
    delivery_returned: DeliveryReturned
    delivery_dead: DeliveryDead
    delivery_held: DeliveryHeld
    turn_begun: TurnBegun
    turn_ended: TurnEnded
    harness_attached: HarnessAttached
    harness_lost: HarnessLost
    agent_created: AgentCreated
    agent_changed: AgentChanged
    agent_parked: AgentParked
    command_given: CommandGiven
    command_closed: CommandClosed
    refused: CallRefused
    reminder_set: ReminderSet
    harness_state_changed: HarnessStateChanged
    schedule_created: ScheduleCreated
    schedule_changed: ScheduleChanged
    schedule_fired: ScheduleFired
    schedule_ended: ScheduleEnded
    def __init__(self, sequence: _Optional[int] = ..., kind: _Optional[_Union[EventKind, str]] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., agent: _Optional[str] = ..., message_id: _Optional[int] = ..., turn_id: _Optional[int] = ..., detail: _Optional[str] = ..., question_id: _Optional[int] = ..., reminder_id: _Optional[int] = ..., delivery_leased: _Optional[_Union[DeliveryLeased, _Mapping]] = ..., delivery_acked: _Optional[_Union[DeliveryAcked, _Mapping]] = ..., delivery_returned: _Optional[_Union[DeliveryReturned, _Mapping]] = ..., delivery_dead: _Optional[_Union[DeliveryDead, _Mapping]] = ..., delivery_held: _Optional[_Union[DeliveryHeld, _Mapping]] = ..., turn_begun: _Optional[_Union[TurnBegun, _Mapping]] = ..., turn_ended: _Optional[_Union[TurnEnded, _Mapping]] = ..., harness_attached: _Optional[_Union[HarnessAttached, _Mapping]] = ..., harness_lost: _Optional[_Union[HarnessLost, _Mapping]] = ..., agent_created: _Optional[_Union[AgentCreated, _Mapping]] = ..., agent_changed: _Optional[_Union[AgentChanged, _Mapping]] = ..., agent_parked: _Optional[_Union[AgentParked, _Mapping]] = ..., command_given: _Optional[_Union[CommandGiven, _Mapping]] = ..., command_closed: _Optional[_Union[CommandClosed, _Mapping]] = ..., refused: _Optional[_Union[CallRefused, _Mapping]] = ..., reminder_set: _Optional[_Union[ReminderSet, _Mapping]] = ..., harness_state_changed: _Optional[_Union[HarnessStateChanged, _Mapping]] = ..., schedule_created: _Optional[_Union[ScheduleCreated, _Mapping]] = ..., schedule_changed: _Optional[_Union[ScheduleChanged, _Mapping]] = ..., schedule_fired: _Optional[_Union[ScheduleFired, _Mapping]] = ..., schedule_ended: _Optional[_Union[ScheduleEnded, _Mapping]] = ...) -> None: ...
