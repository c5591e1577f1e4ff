"""The values of the driver: arguments, answers and errors, as JSON has them."""

import asyncio
import re

from google.protobuf import json_format

import hive_client
from hive_client import HiveError, v1

plain, parsed = json_format.MessageToDict, json_format.ParseDict


def arguments(args):
    """Returns the arguments of a verb, with the names and types of the kit."""
    found = {re.sub("[A-Z]", lambda one: f"_{one[0].lower()}", name): args[name] for name in args}
    for name in {"question_id", "in_reply_to"} & found.keys():
        found[name] = int(found[name])
    if found.get("to", "").startswith("@"):
        found["to"] = getattr(hive_client, found["to"][1:].upper())
    if "delay" in found:
        found["when"] = found.pop("delay")
    if "entries" in found:
        found["entries"] = [parsed(entry, v1.PublishedLooseEnd()) for entry in found["entries"]]
    return found


def failure(error):
    """Returns the answer to a verb that failed."""
    if isinstance(error, asyncio.CancelledError):
        error = HiveError("CANCELLED", "the verb is cancelled")
    elif not isinstance(error, HiveError):
        error = HiveError("INTERNAL", repr(error))  # a fault of the kit or of the driver
    shown = {name: getattr(error, name) for name in ("code", "reason", "message", "metadata")}
    if error.retry_after is not None:
        shown["retryAfter"] = error.retry_after
    return {**shown, "fields": [one._asdict() for one in error.fields]}


def shown(item):
    """Returns the answer to `next`."""
    match item:
        case None:
            return {"end": True}
        case hive_client.Delivery(token=token, attempt=attempt, delivery=delivery):
            parts = {"message": plain(delivery.message), "delivery": plain(delivery)}
            return {"token": token, "attempt": attempt, **parts}
        case hive_client.Fact():
            kind = {"fact": plain(item.event)}
        case _:
            kind = {"gap" if isinstance(item, hive_client.Gap) else "logChanged": True}
    log_id, sequence = item.position
    return {**kind, "position": {"logId": log_id, "sequence": str(sequence)}}
