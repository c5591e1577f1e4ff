import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import effect_pb2 as _effect_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QuestionState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUESTION_STATE_UNSPECIFIED: _ClassVar[QuestionState]
    QUESTION_STATE_OPEN: _ClassVar[QuestionState]
    QUESTION_STATE_ANSWERED: _ClassVar[QuestionState]
    QUESTION_STATE_EXPIRED: _ClassVar[QuestionState]
    QUESTION_STATE_CANCELLED: _ClassVar[QuestionState]
QUESTION_STATE_UNSPECIFIED: QuestionState
QUESTION_STATE_OPEN: QuestionState
QUESTION_STATE_ANSWERED: QuestionState
QUESTION_STATE_EXPIRED: QuestionState
QUESTION_STATE_CANCELLED: QuestionState

class Answer(_message.Message):
    __slots__ = ("choices", "text")
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    choices: _containers.RepeatedScalarFieldContainer[str]
    text: str
    def __init__(self, choices: _Optional[_Iterable[str]] = ..., text: _Optional[str] = ...) -> None: ...

class Question(_message.Message):
    __slots__ = ("id", "asker", "target", "text", "options", "multi", "state", "create_time", "deadline_time", "answer", "closed_by", "operator_override", "close_time", "turn_id", "message_id", "approval")
    ID_FIELD_NUMBER: _ClassVar[int]
    ASKER_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    MULTI_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_TIME_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    CLOSED_BY_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_OVERRIDE_FIELD_NUMBER: _ClassVar[int]
    CLOSE_TIME_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_FIELD_NUMBER: _ClassVar[int]
    id: int
    asker: str
    target: str
    text: str
    options: _containers.RepeatedScalarFieldContainer[str]
    multi: bool
    state: QuestionState
    create_time: _timestamp_pb2.Timestamp
    deadline_time: _timestamp_pb2.Timestamp
    answer: Answer
    closed_by: str
    operator_override: bool
    close_time: _timestamp_pb2.Timestamp
    turn_id: int
    message_id: int
    approval: _effect_pb2.Approval
    def __init__(self, id: _Optional[int] = ..., asker: _Optional[str] = ..., target: _Optional[str] = ..., text: _Optional[str] = ..., options: _Optional[_Iterable[str]] = ..., multi: _Optional[bool] = ..., state: _Optional[_Union[QuestionState, str]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deadline_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., answer: _Optional[_Union[Answer, _Mapping]] = ..., closed_by: _Optional[str] = ..., operator_override: _Optional[bool] = ..., close_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., turn_id: _Optional[int] = ..., message_id: _Optional[int] = ..., approval: _Optional[_Union[_effect_pb2.Approval, _Mapping]] = ...) -> None: ...
