from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Terminal(_message.Message):
    __slots__ = ("rows", "columns", "kind")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    rows: int
    columns: int
    kind: str
    def __init__(self, rows: _Optional[int] = ..., columns: _Optional[int] = ..., kind: _Optional[str] = ...) -> None: ...

class LoginEnd(_message.Message):
    __slots__ = ("logged_in", "error", "exit_code")
    LOGGED_IN_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    logged_in: bool
    error: str
    exit_code: int
    def __init__(self, logged_in: _Optional[bool] = ..., error: _Optional[str] = ..., exit_code: _Optional[int] = ...) -> None: ...
