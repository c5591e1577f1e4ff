from . import loose_end_pb2 as _loose_end_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListLooseEndsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "agent")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    agent: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., agent: _Optional[str] = ...) -> None: ...

class ListLooseEndsResponse(_message.Message):
    __slots__ = ("loose_ends", "next_page_token")
    LOOSE_ENDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    loose_ends: _containers.RepeatedCompositeFieldContainer[_loose_end_pb2.LooseEnd]
    next_page_token: str
    def __init__(self, loose_ends: _Optional[_Iterable[_Union[_loose_end_pb2.LooseEnd, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CancelLooseEndRequest(_message.Message):
    __slots__ = ("request_id", "kind", "id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    kind: _loose_end_pb2.LooseEndKind
    id: int
    def __init__(self, request_id: _Optional[str] = ..., kind: _Optional[_Union[_loose_end_pb2.LooseEndKind, str]] = ..., id: _Optional[int] = ...) -> None: ...

class CancelLooseEndResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PublishedLooseEnd(_message.Message):
    __slots__ = ("key", "text")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    key: str
    text: str
    def __init__(self, key: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class ReplaceLooseEndsRequest(_message.Message):
    __slots__ = ("request_id", "label", "loose_ends")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    LOOSE_ENDS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    label: str
    loose_ends: _containers.RepeatedCompositeFieldContainer[PublishedLooseEnd]
    def __init__(self, request_id: _Optional[str] = ..., label: _Optional[str] = ..., loose_ends: _Optional[_Iterable[_Union[PublishedLooseEnd, _Mapping]]] = ...) -> None: ...

class ReplaceLooseEndsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
