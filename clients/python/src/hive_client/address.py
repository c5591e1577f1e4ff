"""The path of the broker's socket: from the argument, the environment, or the default."""

import os
import re
from urllib.parse import quote

from .error import invalid

DEFAULT = "/run/hive/hive.sock"
# The kernel's `sun_path` has 108 bytes, and the last one is a zero.
_BYTES_MAX = 107


def socket_path(given: str | os.PathLike[str] | None) -> str:
    """Returns the path of the socket.

    Raises:
        HiveError: INVALID_ARGUMENT if the path is empty or too long, or if it is a URI of another
            scheme than `unix`.
    """
    source = "path" if given is not None else "HIVE_SOCKET"
    text = os.fspath(given) if given is not None else os.environ.get("HIVE_SOCKET", DEFAULT)
    path = _without_scheme(source, text)
    size = len(os.fsencode(path))
    if size == 0:
        raise invalid(source, text, "it is empty; give the path of the agent's hive.sock")
    if size > _BYTES_MAX:
        problem = f"it has {size} bytes; a socket has at most {_BYTES_MAX}: use a shorter path"
        raise invalid(source, text, problem)
    return path


def target(path: str) -> str:
    """Returns the path as a target of gRPC, which decodes percent signs."""
    return "unix:" + quote(os.fsencode(path))


def _without_scheme(source: str, text: str) -> str:
    scheme, _, rest = text.partition(":")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) or scheme == text:
        return text
    if scheme != "unix" or (rest.startswith("//") and not rest.startswith("///")):
        problem = "it is not the URI of a unix socket; write unix:PATH, unix:///PATH or ./PATH"
        raise invalid(source, text, problem)
    return rest.removeprefix("//")
