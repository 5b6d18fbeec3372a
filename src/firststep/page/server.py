"""Serve a page on a socket of this machine until Ctrl-C."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import uvicorn

from firststep.errors import FirststepError
from firststep.network import twice_differentiable
from firststep.page.app import Page
from firststep.page.security import Address

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8421
PORTS_TRIED = 20
MOST_CONNECTIONS = 512
SECONDS_TO_END = 2
"""Seconds that running requests get when the server stops."""


def bound(host: str, port: int | None) -> socket.socket:
    """Bind a socket; without a port, the default one or the next free one."""
    if port is not None and not 0 <= port <= 65535:
        raise FirststepError(f"`port` must be 0..65535, not {port}")
    tried = [DEFAULT_PORT + number for number in range(PORTS_TRIED)] if port is None else [port]
    for number in tried:
        try:
            return _bound(host, number)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and number != tried[-1]:
                continue
            raise FirststepError(_why_not(host, number, port is None, error)) from None
    raise AssertionError("there is a last port")


def _bound(host: str, port: int) -> socket.socket:
    (family, kind, protocol, _, where), *_ = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(where)
        found.listen(128)
    except BaseException:
        found.close()
        raise
    return found


def _why_not(host: str, port: int, searched: bool, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE and searched:
        return f"the ports {DEFAULT_PORT} to {port} are all taken; choose one with `port`"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is taken by another program; leave out `port` to take the next that is free"
    if error.errno in (errno.EADDRNOTAVAIL, socket.EAI_NONAME):
        return f"`host` {host} is not an address of this machine"
    return f"cannot serve at {host}:{port}: {error.strerror or error}"


def serve(page: Page, listening: socket.socket, address: Address, on_ready: Callable[[], None]) -> None:
    """Serve until Ctrl-C or SIGTERM; call ``on_ready`` when the first request can be answered."""
    with _for_many_threads():
        server = _server(page, listening, address, on_ready)
        try:
            server.run(sockets=[listening])
        finally:
            page.close()


@contextmanager
def in_background(page: Page, listening: socket.socket, address: Address) -> Iterator[None]:
    """Serve from a background thread within the block: for programs and tests."""
    ready = threading.Event()
    with _for_many_threads():
        server = _server(page, listening, address, ready.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="firststep-server")
        thread.start()
        try:
            while not ready.wait(0.05):
                if not thread.is_alive():
                    raise FirststepError("the server did not start")
            yield
        finally:
            server.should_exit = True
            thread.join()
            page.close()


def _server(
    page: Page, listening: socket.socket, address: Address, on_ready: Callable[[], None]
) -> uvicorn.Server:
    config = uvicorn.Config(
        page.app(address),
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",  # the server would wait for it to end
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=SECONDS_TO_END,
    )
    return _Server(config, on_ready)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()


@contextmanager
def _for_many_threads() -> Iterator[None]:
    """Set process-wide torch settings that concurrent threads would otherwise set and reset for each other:
    one thread per operation, and attention that can be differentiated twice."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with twice_differentiable(replace=False):
            yield
    finally:
        torch.set_num_threads(threads)
