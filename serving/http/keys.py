"""Who may call: keys, the pages whose scripts may, and how often."""

from __future__ import annotations

import secrets
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from serving.http.errors import Refused
from serving.http.limits import RateLimit
from serving.store.keys import Keys, digest

SAFE = {"GET", "HEAD", "OPTIONS"}
SUBPROTOCOL = "bearer."  # a page's script can send no header with a WebSocket, but this


class Gate:
    """What lets a request in: a key where the server has keys, a page it trusts, and a rate.

    `api_key` is one key that is not in the database. Without keys everybody may call.
    """

    def __init__(
        self, keys: Keys, api_key: str | None, origins: tuple[str, ...], rate: RateLimit
    ) -> None:
        self._keys, self._api_key, self._origins, self._rate = keys, api_key, origins, rate

    def check(self, connection: HTTPConnection) -> None:
        """Raises Refused: 401 without a good key, 403 from a foreign page, 429 too often."""
        sent = _sent(connection)
        known = bool(sent) and self._knows(sent)
        address = connection.client.host if connection.client else ""
        self._rate.check(digest(sent) if known else address)
        if not known and (self._api_key or self._keys.exist()):
            raise Refused(
                HTTPStatus.UNAUTHORIZED,
                "the key is missing or wrong",
                where="Authorization",
                hint="send `Authorization: Bearer KEY`",
            )
        self._check_origin(connection)

    def _knows(self, sent: str) -> bool:
        if self._api_key and secrets.compare_digest(_bytes(sent), _bytes(self._api_key)):
            return True
        return self._keys.knows(sent)

    def _check_origin(self, connection: HTTPConnection) -> None:
        """Browsers send foreign pages' WebSockets and bare POSTs without asking first."""
        origin = connection.headers.get("origin")
        if not origin or connection.scope.get("method", "") in SAFE:
            return
        own = urlsplit(origin).netloc == connection.headers.get("host")
        if not own and not {origin, "*"} & set(self._origins):
            raise Refused(
                HTTPStatus.FORBIDDEN,
                "scripts of this page may not call",
                where="Origin",
                hint="start the server with --allow-origin and the page's origin",
            )

    def subprotocol(self, connection: HTTPConnection) -> str | None:
        """The subprotocol with which a WebSocket is taken: the one that its key came in."""
        offered = connection.scope.get("subprotocols", [])
        return next((name for name in offered if name.startswith(SUBPROTOCOL)), None)


def _sent(connection: HTTPConnection) -> str:
    scheme, _, given = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return given.strip()
    for name in connection.scope.get("subprotocols", []):
        if name.startswith(SUBPROTOCOL):
            return str(name.removeprefix(SUBPROTOCOL))
    return ""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
