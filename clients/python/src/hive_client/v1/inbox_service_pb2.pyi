import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import delivery_pb2 as _delivery_pb2
from . import settlement_pb2 as _settlement_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReceiveMessagesRequest(_message.Message):
    __slots__ = ("request_id", "max_deliveries", "max_bytes", "wait", "lease_duration", "tool_use_id", "settlements")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    LEASE_DURATION_FIELD_NUMBER: _ClassVar[int]
    TOOL_USE_ID_FIELD_NUMBER: _ClassVar[int]
    SETTLEMENTS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    max_deliveries: int
    max_bytes: int
    wait: _duration_pb2.Duration
    lease_duration: _duration_pb2.Duration
    tool_use_id: str
    settlements: _containers.RepeatedCompositeFieldContainer[_settlement_pb2.Settlement]
    def __init__(self, request_id: _Optional[str] = ..., max_deliveries: _Optional[int] = ..., max_bytes: _Optional[int] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., lease_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., tool_use_id: _Optional[str] = ..., settlements: _Optional[_Iterable[_Union[_settlement_pb2.Settlement, _Mapping]]] = ...) -> None: ...

class ReceiveMessagesResponse(_message.Message):
    __slots__ = ("deliveries", "pending_count", "served_alone", "settlement_results")
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    SERVED_ALONE_FIELD_NUMBER: _ClassVar[int]
    SETTLEMENT_RESULTS_FIELD_NUMBER: _ClassVar[int]
    deliveries: _containers.RepeatedCompositeFieldContainer[_delivery_pb2.LeasedDelivery]
    pending_count: int
    served_alone: bool
    settlement_results: _containers.RepeatedCompositeFieldContainer[_settlement_pb2.SettlementResult]
    def __init__(self, deliveries: _Optional[_Iterable[_Union[_delivery_pb2.LeasedDelivery, _Mapping]]] = ..., pending_count: _Optional[int] = ..., served_alone: _Optional[bool] = ..., settlement_results: _Optional[_Iterable[_Union[_settlement_pb2.SettlementResult, _Mapping]]] = ...) -> None: ...

class StreamDeliveriesRequest(_message.Message):
    __slots__ = ("open", "settle", "window", "pong")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    SETTLE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    open: OpenDeliveries
    settle: SettleDeliveriesRequest
    window: DeliveryWindow
    pong: Pong
    def __init__(self, open: _Optional[_Union[OpenDeliveries, _Mapping]] = ..., settle: _Optional[_Union[SettleDeliveriesRequest, _Mapping]] = ..., window: _Optional[_Union[DeliveryWindow, _Mapping]] = ..., pong: _Optional[_Union[Pong, _Mapping]] = ...) -> None: ...

class OpenDeliveries(_message.Message):
    __slots__ = ("stream_id", "window", "orphan_grace")
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    ORPHAN_GRACE_FIELD_NUMBER: _ClassVar[int]
    stream_id: str
    window: DeliveryWindow
    orphan_grace: _duration_pb2.Duration
    def __init__(self, stream_id: _Optional[str] = ..., window: _Optional[_Union[DeliveryWindow, _Mapping]] = ..., orphan_grace: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class DeliveryWindow(_message.Message):
    __slots__ = ("deliveries", "bytes")
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    deliveries: int
    bytes: int
    def __init__(self, deliveries: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class Pong(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StreamDeliveriesResponse(_message.Message):
    __slots__ = ("opened", "leased", "settled", "ping")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    LEASED_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    opened: DeliveriesOpened
    leased: LeasedDeliveries
    settled: SettleDeliveriesResponse
    ping: Ping
    def __init__(self, opened: _Optional[_Union[DeliveriesOpened, _Mapping]] = ..., leased: _Optional[_Union[LeasedDeliveries, _Mapping]] = ..., settled: _Optional[_Union[SettleDeliveriesResponse, _Mapping]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ...) -> None: ...

class DeliveriesOpened(_message.Message):
    __slots__ = ("deliveries", "complete")
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    deliveries: _containers.RepeatedCompositeFieldContainer[_delivery_pb2.LeasedDelivery]
    complete: bool
    def __init__(self, deliveries: _Optional[_Iterable[_Union[_delivery_pb2.LeasedDelivery, _Mapping]]] = ..., complete: _Optional[bool] = ...) -> None: ...

class LeasedDeliveries(_message.Message):
    __slots__ = ("deliveries", "pending_count")
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    deliveries: _containers.RepeatedCompositeFieldContainer[_delivery_pb2.LeasedDelivery]
    pending_count: int
    def __init__(self, deliveries: _Optional[_Iterable[_Union[_delivery_pb2.LeasedDelivery, _Mapping]]] = ..., pending_count: _Optional[int] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SettleDeliveriesRequest(_message.Message):
    __slots__ = ("settlements",)
    SETTLEMENTS_FIELD_NUMBER: _ClassVar[int]
    settlements: _containers.RepeatedCompositeFieldContainer[_settlement_pb2.Settlement]
    def __init__(self, settlements: _Optional[_Iterable[_Union[_settlement_pb2.Settlement, _Mapping]]] = ...) -> None: ...

class SettleDeliveriesResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[_settlement_pb2.SettlementResult]
    def __init__(self, results: _Optional[_Iterable[_Union[_settlement_pb2.SettlementResult, _Mapping]]] = ...) -> None: ...

class AckDeliveryRequest(_message.Message):
    __slots__ = ("lease_token", "key")
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    lease_token: str
    key: _delivery_pb2.DeliveryKey
    def __init__(self, lease_token: _Optional[str] = ..., key: _Optional[_Union[_delivery_pb2.DeliveryKey, _Mapping]] = ...) -> None: ...

class AckDeliveryResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NackDeliveryRequest(_message.Message):
    __slots__ = ("lease_token", "error", "permanent")
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PERMANENT_FIELD_NUMBER: _ClassVar[int]
    lease_token: str
    error: str
    permanent: bool
    def __init__(self, lease_token: _Optional[str] = ..., error: _Optional[str] = ..., permanent: _Optional[bool] = ...) -> None: ...

class NackDeliveryResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: _delivery_pb2.DeliveryState
    def __init__(self, state: _Optional[_Union[_delivery_pb2.DeliveryState, str]] = ...) -> None: ...

class ExtendLeaseRequest(_message.Message):
    __slots__ = ("lease_token", "lease_duration")
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LEASE_DURATION_FIELD_NUMBER: _ClassVar[int]
    lease_token: str
    lease_duration: _duration_pb2.Duration
    def __init__(self, lease_token: _Optional[str] = ..., lease_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ExtendLeaseResponse(_message.Message):
    __slots__ = ("lease_remaining",)
    LEASE_REMAINING_FIELD_NUMBER: _ClassVar[int]
    lease_remaining: _duration_pb2.Duration
    def __init__(self, lease_remaining: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GetInboxStatusRequest(_message.Message):
    __slots__ = ("agent",)
    AGENT_FIELD_NUMBER: _ClassVar[int]
    agent: str
    def __init__(self, agent: _Optional[str] = ...) -> None: ...

class GetInboxStatusResponse(_message.Message):
    __slots__ = ("ready_count", "leased_count", "held_count", "dead_count", "oldest_ready_time")
    READY_COUNT_FIELD_NUMBER: _ClassVar[int]
    LEASED_COUNT_FIELD_NUMBER: _ClassVar[int]
    HELD_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEAD_COUNT_FIELD_NUMBER: _ClassVar[int]
    OLDEST_READY_TIME_FIELD_NUMBER: _ClassVar[int]
    ready_count: int
    leased_count: int
    held_count: int
    dead_count: int
    oldest_ready_time: _timestamp_pb2.Timestamp
    def __init__(self, ready_count: _Optional[int] = ..., leased_count: _Optional[int] = ..., held_count: _Optional[int] = ..., dead_count: _Optional[int] = ..., oldest_ready_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListDeliveriesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "agent", "states")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    agent: str
    states: _containers.RepeatedScalarFieldContainer[_delivery_pb2.DeliveryState]
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., agent: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_delivery_pb2.DeliveryState, str]]] = ...) -> None: ...

class ListDeliveriesResponse(_message.Message):
    __slots__ = ("deliveries", "next_page_token")
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    deliveries: _containers.RepeatedCompositeFieldContainer[_delivery_pb2.Delivery]
    next_page_token: str
    def __init__(self, deliveries: _Optional[_Iterable[_Union[_delivery_pb2.Delivery, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
