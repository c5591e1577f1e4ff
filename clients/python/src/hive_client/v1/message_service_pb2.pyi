import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import message_pb2 as _message_pb2
from . import question_pb2 as _question_pb2
from . import refusal_pb2 as _refusal_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SendMessageRequest(_message.Message):
    __slots__ = ("request_id", "to", "body", "in_reply_to")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    IN_REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    to: _message_pb2.Recipient
    body: str
    in_reply_to: int
    def __init__(self, request_id: _Optional[str] = ..., to: _Optional[_Union[_message_pb2.Recipient, _Mapping]] = ..., body: _Optional[str] = ..., in_reply_to: _Optional[int] = ...) -> None: ...

class SendMessageResponse(_message.Message):
    __slots__ = ("message_id", "already_sent", "skipped_agents", "recipient_count", "accept_time", "ahead_count")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ALREADY_SENT_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_AGENTS_FIELD_NUMBER: _ClassVar[int]
    RECIPIENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_TIME_FIELD_NUMBER: _ClassVar[int]
    AHEAD_COUNT_FIELD_NUMBER: _ClassVar[int]
    message_id: int
    already_sent: bool
    skipped_agents: _containers.RepeatedScalarFieldContainer[str]
    recipient_count: int
    accept_time: _timestamp_pb2.Timestamp
    ahead_count: int
    def __init__(self, message_id: _Optional[int] = ..., already_sent: _Optional[bool] = ..., skipped_agents: _Optional[_Iterable[str]] = ..., recipient_count: _Optional[int] = ..., accept_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ahead_count: _Optional[int] = ...) -> None: ...

class StreamMessagesRequest(_message.Message):
    __slots__ = ("send",)
    SEND_FIELD_NUMBER: _ClassVar[int]
    send: SendMessageRequest
    def __init__(self, send: _Optional[_Union[SendMessageRequest, _Mapping]] = ...) -> None: ...

class StreamMessagesResponse(_message.Message):
    __slots__ = ("request_id", "receipt", "refusal")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    receipt: SendMessageResponse
    refusal: _refusal_pb2.Refusal
    def __init__(self, request_id: _Optional[str] = ..., receipt: _Optional[_Union[SendMessageResponse, _Mapping]] = ..., refusal: _Optional[_Union[_refusal_pb2.Refusal, _Mapping]] = ...) -> None: ...

class GetMessageRequest(_message.Message):
    __slots__ = ("message_id",)
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    message_id: int
    def __init__(self, message_id: _Optional[int] = ...) -> None: ...

class GetMessageResponse(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: _message_pb2.Message
    def __init__(self, message: _Optional[_Union[_message_pb2.Message, _Mapping]] = ...) -> None: ...

class ListMessagesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "agent", "thread_of")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    THREAD_OF_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    agent: str
    thread_of: int
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., agent: _Optional[str] = ..., thread_of: _Optional[int] = ...) -> None: ...

class ListMessagesResponse(_message.Message):
    __slots__ = ("messages", "next_page_token")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_message_pb2.Message]
    next_page_token: str
    def __init__(self, messages: _Optional[_Iterable[_Union[_message_pb2.Message, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListRecipientsRequest(_message.Message):
    __slots__ = ("message_id", "page_size", "page_token")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    message_id: int
    page_size: int
    page_token: str
    def __init__(self, message_id: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class MessageRecipient(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListRecipientsResponse(_message.Message):
    __slots__ = ("recipients", "next_page_token")
    RECIPIENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    recipients: _containers.RepeatedCompositeFieldContainer[MessageRecipient]
    next_page_token: str
    def __init__(self, recipients: _Optional[_Iterable[_Union[MessageRecipient, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SearchMessagesRequest(_message.Message):
    __slots__ = ("query", "page_size", "page_token", "agent")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    query: str
    page_size: int
    page_token: str
    agent: str
    def __init__(self, query: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., agent: _Optional[str] = ...) -> None: ...

class SearchHit(_message.Message):
    __slots__ = ("message", "question")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    message: _message_pb2.Message
    question: _question_pb2.Question
    def __init__(self, message: _Optional[_Union[_message_pb2.Message, _Mapping]] = ..., question: _Optional[_Union[_question_pb2.Question, _Mapping]] = ...) -> None: ...

class SearchMessagesResponse(_message.Message):
    __slots__ = ("hits", "next_page_token")
    HITS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    hits: _containers.RepeatedCompositeFieldContainer[SearchHit]
    next_page_token: str
    def __init__(self, hits: _Optional[_Iterable[_Union[SearchHit, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
