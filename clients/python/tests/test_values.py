"""Values without a broker: paths of sockets, errors, pauses and request ids."""

import os
import unittest
from unittest import mock

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from hive_client import HiveError, address, error, retry, v1


def rpc_error(code: grpc.StatusCode, *details, raw: bytes | None = None):
    status = Status(code=code.value[0], message="a sentence")
    for detail in details:
        status.details.append(Any())
        status.details[-1].Pack(detail)
    trailers = grpc.aio.Metadata(("grpc-status-details-bin", raw or status.SerializeToString()))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailers, "a sentence")


class Addresses(unittest.TestCase):
    def test_a_path_and_its_uris_are_the_same(self):
        for text in ("/run/a.sock", "unix:/run/a.sock", "unix:///run/a.sock"):
            self.assertEqual(address.socket_path(text), "/run/a.sock")
        self.assertEqual(address.socket_path("unix:run/a.sock"), "run/a.sock")
        self.assertEqual(address.socket_path("./a:b"), "./a:b")

    def test_the_argument_is_before_the_environment_and_the_default(self):
        with mock.patch.dict(os.environ, {"HIVE_SOCKET": "unix:/run/b.sock"}):
            self.assertEqual(address.socket_path(None), "/run/b.sock")
            self.assertEqual(address.socket_path("/run/a.sock"), "/run/a.sock")
        with mock.patch.dict(os.environ):
            os.environ.pop("HIVE_SOCKET", None)
            self.assertEqual(address.socket_path(None), "/run/hive/hive.sock")

    def test_a_wrong_path_is_an_error_with_its_value(self):
        long = "/" + "ä" * 60
        for text in ("", "unix:", "http://host/x", "unix://host/x", "unix-abstract:x", long):
            with self.assertRaises(HiveError) as caught:
                address.socket_path(text)
            self.assertEqual(
                (caught.exception.code, caught.exception.reason), ("INVALID_ARGUMENT", "")
            )
            self.assertIn(repr(text), caught.exception.message)
        address.socket_path("/" * 107)
        with self.assertRaises(HiveError):
            address.socket_path("/" * 108)

    def test_an_empty_variable_is_an_error_that_names_it(self):
        empty = mock.patch.dict(os.environ, {"HIVE_SOCKET": ""})
        with empty, self.assertRaisesRegex(HiveError, "HIVE_SOCKET is ''"):
            address.socket_path(None)


class Errors(unittest.TestCase):
    def test_a_status_has_all_details(self):
        made = error.from_rpc_error(
            rpc_error(
                grpc.StatusCode.INVALID_ARGUMENT,
                ErrorInfo(domain="hive", reason="FIELD_INVALID", metadata={"field": "body"}),
                BadRequest(field_violations=[{"field": "body", "description": "it is empty"}]),
                RetryInfo(retry_delay=Duration(seconds=1, nanos=500_000_000)),
            )
        )
        self.assertEqual((made.code, made.reason), ("INVALID_ARGUMENT", "FIELD_INVALID"))
        self.assertEqual(made.metadata, {"field": "body"})
        self.assertEqual(made.fields, [("body", "it is empty")])
        self.assertEqual(made.retry_after, 1.5)
        self.assertEqual(str(made), "INVALID_ARGUMENT FIELD_INVALID: a sentence")

    def test_a_status_of_others_has_no_reason(self):
        other = ErrorInfo(domain="example.com", reason="LEASE_LOST", metadata={"a": "b"})
        for made in (
            rpc_error(grpc.StatusCode.UNAVAILABLE, other),
            rpc_error(grpc.StatusCode.UNAVAILABLE, raw=b"\xff\xff"),
        ):
            made = error.from_rpc_error(made)
            self.assertEqual((made.reason, made.metadata, made.retry_after), ("", {}, None))
            self.assertEqual(str(made), "UNAVAILABLE: a sentence")

    def test_a_refusal_gets_its_code_from_the_contract(self):
        made = error.from_refusal(v1.Refusal(reason=v1.Reason.REASON_LEASE_LOST, message="lost"))
        self.assertEqual((made.code, made.reason), ("FAILED_PRECONDITION", "LEASE_LOST"))
        made = error.from_refusal(v1.Refusal(reason=4711, message="new"))
        self.assertEqual((made.code, made.reason), ("UNKNOWN", "4711"))
        self.assertFalse(error.is_repeatable(made))

    def test_the_contract_decides_what_is_repeated(self):
        repeated = {"CALL_LIMIT", "STARTING", "DRAINING", "STORAGE_UNAVAILABLE"}
        for name in v1.Reason.DESCRIPTOR.values_by_name:
            reason = name.removeprefix("REASON_")
            made = HiveError("UNAVAILABLE", "", reason=reason)
            self.assertEqual(error.is_repeatable(made), reason in repeated, reason)
        self.assertFalse(error.is_repeatable(HiveError("UNAVAILABLE", "", reason="NEWER")))
        self.assertFalse(error.is_repeatable(HiveError("UNIMPLEMENTED", "")))
        for code in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
            self.assertTrue(error.is_repeatable(HiveError(code, "")))


class Retries(unittest.TestCase):
    def test_pauses_double_up_to_five_seconds(self):
        backoff, failure = retry.Backoff(), HiveError("UNAVAILABLE", "")
        for most in (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0):
            pause = backoff.pause(failure)
            self.assertTrue(most / 2 <= pause <= most, (most, pause))
        set_by_broker = backoff.pause(HiveError("UNAVAILABLE", "", retry_after=2.0))
        self.assertTrue(2.0 <= set_by_broker <= 2.5, set_by_broker)
        backoff.reset()
        self.assertLessEqual(backoff.pause(failure), 0.05)

    def test_a_request_without_an_id_gets_one_in_a_copy(self):
        request = v1.SendMessageRequest(body="x")
        first, second = retry.with_request_id(request), retry.with_request_id(request)
        self.assertRegex(first.request_id, r"^[0-9a-f]{12}-\d+$")
        self.assertNotEqual(first.request_id, second.request_id)
        self.assertEqual(request.request_id, "")
        self.assertEqual(retry.with_request_id(first), first)
        self.assertEqual(retry.with_request_id(v1.GetMessageRequest(message_id=1)).message_id, 1)

    def test_an_attempt_may_last_for_the_wait_of_its_request(self):
        receive = v1.ReceiveMessagesRequest(wait=Duration(seconds=60))
        self.assertEqual(retry.attempt_timeout(receive), 70)
        self.assertEqual(retry.attempt_timeout(v1.SendMessageRequest()), 10)
