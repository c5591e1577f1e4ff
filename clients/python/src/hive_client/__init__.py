"""Client of Hive, the broker for fleets of agents.

`hive_client.sync` has the same verbs without asyncio, and `hive_client.v1` the messages.
"""

from . import v1
from .asked import Asked
from .delivery import Delivery
from .error import FieldViolation, HiveError
from .follow import Fact, Follow, Gap, LogChanged, Position
from .hive import Hive, connect
from .mail import Mail
from .recipient import EVERYONE, OPERATOR, PARENT
from .version import __version__

__all__ = [
    "EVERYONE",
    "OPERATOR",
    "PARENT",
    "Asked",
    "Delivery",
    "Fact",
    "FieldViolation",
    "Follow",
    "Gap",
    "Hive",
    "HiveError",
    "LogChanged",
    "Mail",
    "Position",
    "__version__",
    "connect",
    "v1",
]
