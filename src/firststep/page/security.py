"""Access control: this page in a browser on this machine, or a client with the token.

A page of another site can make a browser send requests to this machine: by its address, or by a host name
that the site points to it (DNS rebinding). The former carry a foreign ``Origin`` or ``Sec-Fetch-Site``, the
latter a foreign ``Host``. All of them are refused.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
import socket
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data: blob:; style-src 'self'; script-src 'self'; "
        "connect-src 'self'; media-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Address:
    """The address of the page."""

    host: str
    port: int
    token: str | None = None
    """Required in every request; None if only this machine can connect."""

    @staticmethod
    def of(host: str, port: int) -> Address:
        return Address(host, port, None if is_loopback(host) else secrets.token_urlsafe(24))

    @property
    def url(self) -> str:
        """Return the address to open in a browser."""
        name = socket.gethostname() if _is_any(self.host) else self.host
        shown = f"[{name}]" if ":" in name else name
        return f"http://{shown}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    @property
    def cookie(self) -> str:
        """Return the cookie's name. It contains the port, because cookies do not distinguish ports."""
        return f"firststep-{self.port}"

    def is_ours(self, host: str) -> bool:
        """Return whether a ``Host`` header names this server."""
        name, port = _split(host)
        if port != self.port:
            return False
        if name in {*LOOPBACK, self.host.lower()}:
            return True
        # Bound to all addresses: accept numeric addresses and this machine's own name.
        return _is_any(self.host) and (name == socket.gethostname().lower() or _is_number(name))


def is_loopback(host: str) -> bool:
    return host.lower() in LOOPBACK or (_is_number(host) and ipaddress.ip_address(host).is_loopback)


class Guard:
    """ASGI middleware that refuses foreign requests and adds the headers of every response."""

    def __init__(self, app: ASGIApp, address: Address) -> None:
        self._app, self._address = app, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the server's start-up and shutdown; there are no websockets
            await self._app(scope, receive, send)
            return
        is_api = scope["path"].startswith("/api/")
        cookie: str | None = None

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store" if is_api else "no-cache")
                if cookie is not None:
                    headers.append("Set-Cookie", cookie)
            await send(message)

        refusal = self._refusal(Headers(scope=scope), is_api)
        if refusal is None and self._address.token is not None:
            known, given = self._has_cookie(scope), self._has_token(scope)
            if not known and not given:
                refusal = HTTPStatus.UNAUTHORIZED, "this page needs the token that firststep page printed"
            elif not known:
                cookie = f"{self._address.cookie}={self._address.token}; Path=/; HttpOnly; SameSite=Strict"
        if refusal is not None:
            await _refuse(with_headers, *refusal)
            return
        await self._app(scope, receive, with_headers)

    def _refusal(self, headers: Headers, is_api: bool) -> tuple[HTTPStatus, str] | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._address.is_ours(hosts[0]):
            return HTTPStatus.FORBIDDEN, "this server has another name"
        for origin in headers.getlist("origin"):
            scheme, _, host = origin.partition("://")
            if scheme != "http" or host.lower() != hosts[0].lower():
                return HTTPStatus.FORBIDDEN, "requests from other pages are refused"
        if is_api and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return HTTPStatus.FORBIDDEN, "requests from other pages are refused"
        return None

    def _has_token(self, scope: Scope) -> bool:
        query = scope["query_string"].decode("latin-1")
        try:
            given = parse_qs(query, max_num_fields=20).get("token", [""])[0]
        except ValueError:
            return False
        return self._same(given)

    def _has_cookie(self, scope: Scope) -> bool:
        jar: SimpleCookie = SimpleCookie()
        try:
            jar.load(Headers(scope=scope).get("cookie", ""))
        except CookieError:
            return False
        return self._address.cookie in jar and self._same(jar[self._address.cookie].value)

    def _same(self, given: str) -> bool:
        assert self._address.token is not None
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._address.token.encode())


async def _refuse(send: Send, status: HTTPStatus, message: str) -> None:
    body = json.dumps({"error": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _split(host: str) -> tuple[str, int | None]:
    """Split a ``Host`` header into name and port; the default port is 80."""
    name, colon, port = host.strip().lower().rpartition(":")
    if not colon or port.endswith("]"):
        name, port = host.strip().lower(), "80"
    is_number = port.isascii() and port.isdigit() and len(port) <= 5
    return name.removeprefix("[").removesuffix("]"), int(port) if is_number else None


def _is_any(host: str) -> bool:
    return _is_number(host) and ipaddress.ip_address(host).is_unspecified


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
