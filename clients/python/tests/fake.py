"""A broker whose answers a test sets, for what a real one does rarely."""

import asyncio
from pathlib import Path

import grpc
from google.protobuf.any_pb2 import Any
from google.rpc.status_pb2 import Status

from hive_client import v1
from hive_client.v1 import (
    inbox_service_pb2_grpc,
    message_service_pb2_grpc,
    server_info_service_pb2_grpc,
)


class Fake(
    message_service_pb2_grpc.MessageServiceServicer,
    server_info_service_pb2_grpc.ServerInfoServiceServicer,
    inbox_service_pb2_grpc.InboxServiceServicer,
):
    """Answers `SendMessage` with the next of `answers`: a response, or a code with details."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.answers: list[object] = []
        self.requests: list[v1.SendMessageRequest] = []
        self.metadata: list[dict[str, str]] = []
        self.handshakes: list[v1.GetServerInfoRequest] = []
        self.handshake_answers: list[object] = []
        self.arrived = asyncio.Event()  # a call that gets no answer is here
        self.cancelled = asyncio.Event()  # that call was cancelled
        self.streams: asyncio.Queue[Stream] = asyncio.Queue()

    async def start(self) -> None:
        self.server = grpc.aio.server()
        for module, name in (
            (message_service_pb2_grpc, "MessageService"),
            (server_info_service_pb2_grpc, "ServerInfoService"),
            (inbox_service_pb2_grpc, "InboxService"),
        ):
            getattr(module, f"add_{name}Servicer_to_server")(self, self.server)
        self.server.add_insecure_port(f"unix:{self.path}")
        await self.server.start()

    async def stop(self) -> None:
        async with asyncio.timeout(5):
            await self.server.stop(0)

    async def GetServerInfo(self, request, context):
        self.handshakes.append(request)
        if self.handshake_answers:
            await answer(self.handshake_answers.pop(0), context)
        return v1.GetServerInfoResponse(version="fake", capabilities=v1.Capabilities(search=True))

    async def SendMessage(self, request, context):
        self.requests.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        if not self.answers:
            self.arrived.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()
        return await answer(self.answers.pop(0), context)

    async def StreamDeliveries(self, requests, context):
        stream = Stream(requests, context)
        await self.streams.put(stream)
        await stream.ended.wait()
        if stream.refusal is not None:
            await answer(stream.refusal, context)


class Stream:
    """One stream of deliveries, which a test reads and writes."""

    def __init__(self, requests, context) -> None:
        self._requests, self._context = requests, context
        self.ended = asyncio.Event()
        self.refusal: object = None

    async def read(self):
        """Returns the next request, or None after the client has closed its side."""
        return await anext(self._requests, None)

    async def write(self, **step) -> None:
        await self._context.write(v1.StreamDeliveriesResponse(**step))

    def end(self, refusal: object = None) -> None:
        self.refusal = refusal
        self.ended.set()


async def answer(given, context):
    """Returns a response, or ends the call with a code and details."""
    if not isinstance(given, tuple):
        return given
    code, *details = given
    status = Status(code=code.value[0], message="refused")
    for detail in details:
        status.details.append(Any())
        status.details[-1].Pack(detail)
    trailer = (("grpc-status-details-bin", status.SerializeToString()),) if details else ()
    await context.abort(code, "refused", trailer)
