from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetActionsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetActionsResponse(_message.Message):
    __slots__ = ("actions",)
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    actions: _containers.RepeatedCompositeFieldContainer[Action]
    def __init__(self, actions: _Optional[_Iterable[_Union[Action, _Mapping]]] = ...) -> None: ...

class Action(_message.Message):
    __slots__ = ("name", "description", "args")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    args: _containers.RepeatedCompositeFieldContainer[ActionArgument]
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., args: _Optional[_Iterable[_Union[ActionArgument, _Mapping]]] = ...) -> None: ...

class ActionArgument(_message.Message):
    __slots__ = ("name", "pattern")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    name: str
    pattern: str
    def __init__(self, name: _Optional[str] = ..., pattern: _Optional[str] = ...) -> None: ...
