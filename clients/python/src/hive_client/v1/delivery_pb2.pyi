import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import message_pb2 as _message_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeliveryState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DELIVERY_STATE_UNSPECIFIED: _ClassVar[DeliveryState]
    DELIVERY_STATE_READY: _ClassVar[DeliveryState]
    DELIVERY_STATE_LEASED: _ClassVar[DeliveryState]
    DELIVERY_STATE_HELD: _ClassVar[DeliveryState]
    DELIVERY_STATE_DEAD: _ClassVar[DeliveryState]
    DELIVERY_STATE_ACKED: _ClassVar[DeliveryState]
    DELIVERY_STATE_DROPPED: _ClassVar[DeliveryState]
    DELIVERY_STATE_SUPERSEDED: _ClassVar[DeliveryState]

class Lane(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LANE_UNSPECIFIED: _ClassVar[Lane]
    LANE_SYSTEM: _ClassVar[Lane]
    LANE_NORMAL: _ClassVar[Lane]

class RedeliveryCause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REDELIVERY_CAUSE_UNSPECIFIED: _ClassVar[RedeliveryCause]
    REDELIVERY_CAUSE_TURN_FAILED: _ClassVar[RedeliveryCause]
    REDELIVERY_CAUSE_HARNESS_VANISHED: _ClassVar[RedeliveryCause]
    REDELIVERY_CAUSE_RATE_LIMITED: _ClassVar[RedeliveryCause]
    REDELIVERY_CAUSE_AUTH_FAILED: _ClassVar[RedeliveryCause]
    REDELIVERY_CAUSE_UNAVAILABLE: _ClassVar[RedeliveryCause]
    REDELIVERY_CAUSE_DRAINED: _ClassVar[RedeliveryCause]
    REDELIVERY_CAUSE_RELEASED: _ClassVar[RedeliveryCause]
    REDELIVERY_CAUSE_REDRIVEN: _ClassVar[RedeliveryCause]
    REDELIVERY_CAUSE_NOT_RECEIVED: _ClassVar[RedeliveryCause]
    REDELIVERY_CAUSE_NACKED: _ClassVar[RedeliveryCause]
    REDELIVERY_CAUSE_LEASE_EXPIRED: _ClassVar[RedeliveryCause]
    REDELIVERY_CAUSE_RESTORED: _ClassVar[RedeliveryCause]
DELIVERY_STATE_UNSPECIFIED: DeliveryState
DELIVERY_STATE_READY: DeliveryState
DELIVERY_STATE_LEASED: DeliveryState
DELIVERY_STATE_HELD: DeliveryState
DELIVERY_STATE_DEAD: DeliveryState
DELIVERY_STATE_ACKED: DeliveryState
DELIVERY_STATE_DROPPED: DeliveryState
DELIVERY_STATE_SUPERSEDED: DeliveryState
LANE_UNSPECIFIED: Lane
LANE_SYSTEM: Lane
LANE_NORMAL: Lane
REDELIVERY_CAUSE_UNSPECIFIED: RedeliveryCause
REDELIVERY_CAUSE_TURN_FAILED: RedeliveryCause
REDELIVERY_CAUSE_HARNESS_VANISHED: RedeliveryCause
REDELIVERY_CAUSE_RATE_LIMITED: RedeliveryCause
REDELIVERY_CAUSE_AUTH_FAILED: RedeliveryCause
REDELIVERY_CAUSE_UNAVAILABLE: RedeliveryCause
REDELIVERY_CAUSE_DRAINED: RedeliveryCause
REDELIVERY_CAUSE_RELEASED: RedeliveryCause
REDELIVERY_CAUSE_REDRIVEN: RedeliveryCause
REDELIVERY_CAUSE_NOT_RECEIVED: RedeliveryCause
REDELIVERY_CAUSE_NACKED: RedeliveryCause
REDELIVERY_CAUSE_LEASE_EXPIRED: RedeliveryCause
REDELIVERY_CAUSE_RESTORED: RedeliveryCause

class Delivery(_message.Message):
    __slots__ = ("message", "agent", "state", "lane", "attempt", "redelivery_cause", "last_error", "output_tail", "turn_id", "not_before_time", "state_time", "settled_by")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    REDELIVERY_CAUSE_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TAIL_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    NOT_BEFORE_TIME_FIELD_NUMBER: _ClassVar[int]
    STATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SETTLED_BY_FIELD_NUMBER: _ClassVar[int]
    message: _message_pb2.Message
    agent: str
    state: DeliveryState
    lane: Lane
    attempt: int
    redelivery_cause: RedeliveryCause
    last_error: str
    output_tail: str
    turn_id: int
    not_before_time: _timestamp_pb2.Timestamp
    state_time: _timestamp_pb2.Timestamp
    settled_by: str
    def __init__(self, message: _Optional[_Union[_message_pb2.Message, _Mapping]] = ..., agent: _Optional[str] = ..., state: _Optional[_Union[DeliveryState, str]] = ..., lane: _Optional[_Union[Lane, str]] = ..., attempt: _Optional[int] = ..., redelivery_cause: _Optional[_Union[RedeliveryCause, str]] = ..., last_error: _Optional[str] = ..., output_tail: _Optional[str] = ..., turn_id: _Optional[int] = ..., not_before_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., state_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., settled_by: _Optional[str] = ...) -> None: ...

class LeasedDelivery(_message.Message):
    __slots__ = ("delivery", "lease_token", "lease_remaining")
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LEASE_REMAINING_FIELD_NUMBER: _ClassVar[int]
    delivery: Delivery
    lease_token: str
    lease_remaining: _duration_pb2.Duration
    def __init__(self, delivery: _Optional[_Union[Delivery, _Mapping]] = ..., lease_token: _Optional[str] = ..., lease_remaining: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class DeliveryKey(_message.Message):
    __slots__ = ("agent", "message_id")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    agent: str
    message_id: int
    def __init__(self, agent: _Optional[str] = ..., message_id: _Optional[int] = ...) -> None: ...
