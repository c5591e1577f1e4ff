from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Retry(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RETRY_UNSPECIFIED: _ClassVar[Retry]
    RETRY_NEVER: _ClassVar[Retry]
    RETRY_LATER: _ClassVar[Retry]
    RETRY_SOON: _ClassVar[Retry]

class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_UNSPECIFIED: _ClassVar[Reason]
    REASON_FIELD_INVALID: _ClassVar[Reason]
    REASON_AGENT_NOT_FOUND: _ClassVar[Reason]
    REASON_AGENT_RETIRED: _ClassVar[Reason]
    REASON_MESSAGE_NOT_FOUND: _ClassVar[Reason]
    REASON_DELIVERY_NOT_FOUND: _ClassVar[Reason]
    REASON_QUESTION_NOT_FOUND: _ClassVar[Reason]
    REASON_REMINDER_NOT_FOUND: _ClassVar[Reason]
    REASON_TURN_NOT_FOUND: _ClassVar[Reason]
    REASON_COMMAND_NOT_FOUND: _ClassVar[Reason]
    REASON_LOGIN_NOT_FOUND: _ClassVar[Reason]
    REASON_REQUEST_ID_REUSED: _ClassVar[Reason]
    REASON_AGENT_EXISTS: _ClassVar[Reason]
    REASON_RECIPIENT_NOT_ALLOWED: _ClassVar[Reason]
    REASON_NOT_YOURS: _ClassVar[Reason]
    REASON_NOT_THE_TARGET: _ClassVar[Reason]
    REASON_NOT_YOUR_CHILD: _ClassVar[Reason]
    REASON_NOT_AN_AGENT: _ClassVar[Reason]
    REASON_CAPABILITY_MISSING: _ClassVar[Reason]
    REASON_PEER_NOT_TRUSTED: _ClassVar[Reason]
    REASON_LEASE_LOST: _ClassVar[Reason]
    REASON_SESSION_LOST: _ClassVar[Reason]
    REASON_TURN_ENDED: _ClassVar[Reason]
    REASON_TURN_OPEN: _ClassVar[Reason]
    REASON_HARNESS_ATTACHED: _ClassVar[Reason]
    REASON_ALREADY_ATTACHED: _ClassVar[Reason]
    REASON_HARNESS_OFFLINE: _ClassVar[Reason]
    REASON_LOGIN_OPEN: _ClassVar[Reason]
    REASON_AGENT_PARKED: _ClassVar[Reason]
    REASON_AGENT_STOPPED: _ClassVar[Reason]
    REASON_AGENT_PURGING: _ClassVar[Reason]
    REASON_WRONG_STATE: _ClassVar[Reason]
    REASON_QUESTION_CLOSED: _ClassVar[Reason]
    REASON_TOPOLOGY_CYCLE: _ClassVar[Reason]
    REASON_STATUS_TOO_LONG: _ClassVar[Reason]
    REASON_BODY_TOO_LARGE: _ClassVar[Reason]
    REASON_INBOX_FULL: _ClassVar[Reason]
    REASON_RATE_LIMITED: _ClassVar[Reason]
    REASON_STORAGE_FULL: _ClassVar[Reason]
    REASON_QUESTION_LIMIT: _ClassVar[Reason]
    REASON_REMINDER_LIMIT: _ClassVar[Reason]
    REASON_CALL_LIMIT: _ClassVar[Reason]
    REASON_STARTING: _ClassVar[Reason]
    REASON_DRAINING: _ClassVar[Reason]
    REASON_STORAGE_UNAVAILABLE: _ClassVar[Reason]
    REASON_INTERNAL: _ClassVar[Reason]
    REASON_METHOD_NOT_SERVED: _ClassVar[Reason]
    REASON_REQUEST_COMPRESSED: _ClassVar[Reason]
    REASON_STREAM_REPLACED: _ClassVar[Reason]
    REASON_STREAM_SILENT: _ClassVar[Reason]
    REASON_ETAG_MISMATCH: _ClassVar[Reason]
    REASON_SOCKET_LIMIT: _ClassVar[Reason]
    REASON_LAUNCHER_ATTACHED: _ClassVar[Reason]
    REASON_LAUNCHER_OFFLINE: _ClassVar[Reason]
    REASON_DIFF_CHANGED: _ClassVar[Reason]
    REASON_SCHEDULE_NOT_FOUND: _ClassVar[Reason]
    REASON_SCHEDULE_LIMIT: _ClassVar[Reason]
RETRY_UNSPECIFIED: Retry
RETRY_NEVER: Retry
RETRY_LATER: Retry
RETRY_SOON: Retry
REASON_UNSPECIFIED: Reason
REASON_FIELD_INVALID: Reason
REASON_AGENT_NOT_FOUND: Reason
REASON_AGENT_RETIRED: Reason
REASON_MESSAGE_NOT_FOUND: Reason
REASON_DELIVERY_NOT_FOUND: Reason
REASON_QUESTION_NOT_FOUND: Reason
REASON_REMINDER_NOT_FOUND: Reason
REASON_TURN_NOT_FOUND: Reason
REASON_COMMAND_NOT_FOUND: Reason
REASON_LOGIN_NOT_FOUND: Reason
REASON_REQUEST_ID_REUSED: Reason
REASON_AGENT_EXISTS: Reason
REASON_RECIPIENT_NOT_ALLOWED: Reason
REASON_NOT_YOURS: Reason
REASON_NOT_THE_TARGET: Reason
REASON_NOT_YOUR_CHILD: Reason
REASON_NOT_AN_AGENT: Reason
REASON_CAPABILITY_MISSING: Reason
REASON_PEER_NOT_TRUSTED: Reason
REASON_LEASE_LOST: Reason
REASON_SESSION_LOST: Reason
REASON_TURN_ENDED: Reason
REASON_TURN_OPEN: Reason
REASON_HARNESS_ATTACHED: Reason
REASON_ALREADY_ATTACHED: Reason
REASON_HARNESS_OFFLINE: Reason
REASON_LOGIN_OPEN: Reason
REASON_AGENT_PARKED: Reason
REASON_AGENT_STOPPED: Reason
REASON_AGENT_PURGING: Reason
REASON_WRONG_STATE: Reason
REASON_QUESTION_CLOSED: Reason
REASON_TOPOLOGY_CYCLE: Reason
REASON_STATUS_TOO_LONG: Reason
REASON_BODY_TOO_LARGE: Reason
REASON_INBOX_FULL: Reason
REASON_RATE_LIMITED: Reason
REASON_STORAGE_FULL: Reason
REASON_QUESTION_LIMIT: Reason
REASON_REMINDER_LIMIT: Reason
REASON_CALL_LIMIT: Reason
REASON_STARTING: Reason
REASON_DRAINING: Reason
REASON_STORAGE_UNAVAILABLE: Reason
REASON_INTERNAL: Reason
REASON_METHOD_NOT_SERVED: Reason
REASON_REQUEST_COMPRESSED: Reason
REASON_STREAM_REPLACED: Reason
REASON_STREAM_SILENT: Reason
REASON_ETAG_MISMATCH: Reason
REASON_SOCKET_LIMIT: Reason
REASON_LAUNCHER_ATTACHED: Reason
REASON_LAUNCHER_OFFLINE: Reason
REASON_DIFF_CHANGED: Reason
REASON_SCHEDULE_NOT_FOUND: Reason
REASON_SCHEDULE_LIMIT: Reason
ABOUT_FIELD_NUMBER: _ClassVar[int]
about: _descriptor.FieldDescriptor

class ReasonOptions(_message.Message):
    __slots__ = ("code", "retry", "metadata", "optional_metadata")
    CODE_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_METADATA_FIELD_NUMBER: _ClassVar[int]
    code: str
    retry: Retry
    metadata: _containers.RepeatedScalarFieldContainer[str]
    optional_metadata: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, code: _Optional[str] = ..., retry: _Optional[_Union[Retry, str]] = ..., metadata: _Optional[_Iterable[str]] = ..., optional_metadata: _Optional[_Iterable[str]] = ...) -> None: ...
