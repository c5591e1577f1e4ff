import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from . import effect_pb2 as _effect_pb2
from . import message_pb2 as _message_pb2
from . import question_pb2 as _question_pb2
from . import watch_pb2 as _watch_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AskQuestionRequest(_message.Message):
    __slots__ = ("request_id", "to", "text", "options", "multi", "ttl", "effect")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    MULTI_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    to: _message_pb2.Recipient
    text: str
    options: _containers.RepeatedScalarFieldContainer[str]
    multi: bool
    ttl: _duration_pb2.Duration
    effect: _effect_pb2.Effect
    def __init__(self, request_id: _Optional[str] = ..., to: _Optional[_Union[_message_pb2.Recipient, _Mapping]] = ..., text: _Optional[str] = ..., options: _Optional[_Iterable[str]] = ..., multi: _Optional[bool] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., effect: _Optional[_Union[_effect_pb2.Effect, _Mapping]] = ...) -> None: ...

class AskQuestionResponse(_message.Message):
    __slots__ = ("question", "already_asked")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    ALREADY_ASKED_FIELD_NUMBER: _ClassVar[int]
    question: _question_pb2.Question
    already_asked: bool
    def __init__(self, question: _Optional[_Union[_question_pb2.Question, _Mapping]] = ..., already_asked: _Optional[bool] = ...) -> None: ...

class AnswerQuestionRequest(_message.Message):
    __slots__ = ("request_id", "question_id", "choices", "text", "diff_digest")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    QUESTION_ID_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DIFF_DIGEST_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    question_id: int
    choices: _containers.RepeatedScalarFieldContainer[str]
    text: str
    diff_digest: str
    def __init__(self, request_id: _Optional[str] = ..., question_id: _Optional[int] = ..., choices: _Optional[_Iterable[str]] = ..., text: _Optional[str] = ..., diff_digest: _Optional[str] = ...) -> None: ...

class AnswerQuestionResponse(_message.Message):
    __slots__ = ("question",)
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    question: _question_pb2.Question
    def __init__(self, question: _Optional[_Union[_question_pb2.Question, _Mapping]] = ...) -> None: ...

class CancelQuestionRequest(_message.Message):
    __slots__ = ("request_id", "question_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    QUESTION_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    question_id: int
    def __init__(self, request_id: _Optional[str] = ..., question_id: _Optional[int] = ...) -> None: ...

class CancelQuestionResponse(_message.Message):
    __slots__ = ("question",)
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    question: _question_pb2.Question
    def __init__(self, question: _Optional[_Union[_question_pb2.Question, _Mapping]] = ...) -> None: ...

class GetQuestionRequest(_message.Message):
    __slots__ = ("question_id",)
    QUESTION_ID_FIELD_NUMBER: _ClassVar[int]
    question_id: int
    def __init__(self, question_id: _Optional[int] = ...) -> None: ...

class GetQuestionResponse(_message.Message):
    __slots__ = ("question",)
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    question: _question_pb2.Question
    def __init__(self, question: _Optional[_Union[_question_pb2.Question, _Mapping]] = ...) -> None: ...

class ListQuestionsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "states", "asker", "target")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    ASKER_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    states: _containers.RepeatedScalarFieldContainer[_question_pb2.QuestionState]
    asker: str
    target: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_question_pb2.QuestionState, str]]] = ..., asker: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class ListQuestionsResponse(_message.Message):
    __slots__ = ("questions", "next_page_token")
    QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    questions: _containers.RepeatedCompositeFieldContainer[_question_pb2.Question]
    next_page_token: str
    def __init__(self, questions: _Optional[_Iterable[_Union[_question_pb2.Question, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchQuestionsRequest(_message.Message):
    __slots__ = ("asker", "target", "question_id")
    ASKER_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    QUESTION_ID_FIELD_NUMBER: _ClassVar[int]
    asker: str
    target: str
    question_id: int
    def __init__(self, asker: _Optional[str] = ..., target: _Optional[str] = ..., question_id: _Optional[int] = ...) -> None: ...

class QuestionSnapshot(_message.Message):
    __slots__ = ("questions", "complete", "log_id", "sequence")
    QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    LOG_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    questions: _containers.RepeatedCompositeFieldContainer[_question_pb2.Question]
    complete: bool
    log_id: str
    sequence: int
    def __init__(self, questions: _Optional[_Iterable[_Union[_question_pb2.Question, _Mapping]]] = ..., complete: _Optional[bool] = ..., log_id: _Optional[str] = ..., sequence: _Optional[int] = ...) -> None: ...

class QuestionBatch(_message.Message):
    __slots__ = ("questions", "sequence")
    QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    questions: _containers.RepeatedCompositeFieldContainer[_question_pb2.Question]
    sequence: int
    def __init__(self, questions: _Optional[_Iterable[_Union[_question_pb2.Question, _Mapping]]] = ..., sequence: _Optional[int] = ...) -> None: ...

class WatchQuestionsResponse(_message.Message):
    __slots__ = ("snapshot", "batch", "progress")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    snapshot: QuestionSnapshot
    batch: QuestionBatch
    progress: _watch_pb2.WatchProgress
    def __init__(self, snapshot: _Optional[_Union[QuestionSnapshot, _Mapping]] = ..., batch: _Optional[_Union[QuestionBatch, _Mapping]] = ..., progress: _Optional[_Union[_watch_pb2.WatchProgress, _Mapping]] = ...) -> None: ...
