from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class WakeRequest(_message.Message):
    __slots__ = ("request_id", "label", "body", "coalescing_key")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    COALESCING_KEY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    label: str
    body: str
    coalescing_key: str
    def __init__(self, request_id: _Optional[str] = ..., label: _Optional[str] = ..., body: _Optional[str] = ..., coalescing_key: _Optional[str] = ...) -> None: ...

class WakeResponse(_message.Message):
    __slots__ = ("message_id", "superseded_message_id")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    message_id: int
    superseded_message_id: int
    def __init__(self, message_id: _Optional[int] = ..., superseded_message_id: _Optional[int] = ...) -> None: ...
