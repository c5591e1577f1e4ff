"""One delivery of a stream, and how it is settled: once, by its lease token."""

import asyncio
from collections.abc import Awaitable, Callable

from . import v1
from .error import HiveError

# The broker refuses a longer error, in bytes, and ends the stream.
_ERROR_BYTES_MAX = 4096

_ACK = v1.Ack()

Settle = Callable[["Delivery", v1.Settlement], Awaitable[v1.DeliveryState]]


class Delivery:
    """A leased delivery. Settle it once, with `ack`, `nack` or `release`.

    Attributes:
        delivery: The delivery, as the broker sent it.
        token: Lease token.
        lost: Event that is set when the lease is lost. Then stop: another consumer may get it.
        is_settled: Whether it was settled, or is being settled.
    """

    def __init__(self, lease: v1.LeasedDelivery, settle: Settle) -> None:
        self.delivery = lease.delivery
        self.token = lease.lease_token
        self.lost = asyncio.Event()
        self.is_settled = False
        self._settle = settle

    @property
    def message(self) -> v1.Message:
        """The message."""
        return self.delivery.message

    @property
    def attempt(self) -> int:
        """The number of this try, from 1."""
        return self.delivery.attempt

    @property
    def redelivery_cause(self) -> v1.RedeliveryCause | None:
        """The cause of the last requeue; None if there was none."""
        known = self.delivery.HasField("redelivery_cause")
        return self.delivery.redelivery_cause if known else None

    async def ack(self) -> v1.DeliveryState:
        """Settles the delivery as done, and returns its state after the commit.

        Raises:
            HiveError: LEASE_LOST if the lease is no longer valid, CANCELLED if the mail is closed,
                FAILED_PRECONDITION if the delivery was settled already.
        """
        return await self._once(v1.Settlement(ack=_ACK))

    async def nack(self, error: str, permanent: bool = False) -> v1.DeliveryState:
        """Settles the delivery as failed, and returns its state: READY, or DEAD.

        Args:
            error: Sentence for later readers. What is over 4,096 bytes is cut.
            permanent: Whether no retry can succeed; the delivery becomes a dead letter at once.

        Raises:
            HiveError: As for `ack`.
        """
        kept = error.encode(errors="replace")[:_ERROR_BYTES_MAX].decode(errors="ignore")
        return await self._once(v1.Settlement(nack=v1.Nack(error=kept, permanent=permanent)))

    async def release(self) -> v1.DeliveryState:
        """Requeues the delivery at once and without an attempt, because it was not begun.

        Raises:
            HiveError: As for `ack`.
        """
        return await self._once(v1.Settlement(release=v1.Release()))

    def _once(self, settlement: v1.Settlement) -> Awaitable[v1.DeliveryState]:
        if self.is_settled:
            problem = f"the delivery of message {self.message.id} was settled already"
            raise HiveError("FAILED_PRECONDITION", f"{problem}: settle each delivery once")
        settlement.lease_token = self.token
        return self._settle(self, settlement)
