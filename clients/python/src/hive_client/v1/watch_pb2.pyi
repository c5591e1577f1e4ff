from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class WatchProgress(_message.Message):
    __slots__ = ("log_id", "sequence")
    LOG_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    log_id: str
    sequence: int
    def __init__(self, log_id: _Optional[str] = ..., sequence: _Optional[int] = ...) -> None: ...
