"""``firststep page``: serve the browser page on this machine."""

from __future__ import annotations

import contextlib
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import tyro

from firststep.cli.boundary import say
from firststep.cli.run_argument import A_RUN
from firststep.cli.terminal import console
from firststep.errors import FirststepError
from firststep.page import DEFAULT_HOST, Address, Page, bound, load_models, serve

SHIPPED_PAIR = ("builtin:glyphs-maml", "builtin:glyphs-conditioned")


def page(
    run: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="RUN ...", help=f"{A_RUN}; MAML beside the conditioned model if left out."),
    ] = SHIPPED_PAIR,
    /,
    *,
    port: Annotated[int | None, tyro.conf.arg(metavar="PORT")] = None,
    host: Annotated[str, tyro.conf.arg(metavar="ADDRESS")] = DEFAULT_HOST,
    runs: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("runs"),
    open: bool = True,
    device: str | None = None,
) -> None:
    """Teach models your own symbols or pictures in the browser, and watch every gradient step.

    Everything stays on this machine. Drawings and pictures are not stored. Ctrl-C stops the server.

    Args:
        port: Port; the next free one from 8421 on if left out.
        host: Address to serve at instead of this machine's own. Anybody on the network who has the token can
            then use the page.
        runs: Folder of the runs to watch while they train.
        open: Open the page in the browser.
        device: Device: cpu, cuda, ...; as trained if left out.
    """
    with bound(host, port) as listening:  # a taken port fails before the models are loaded
        models = load_models(run, device)
        for name, why in models.failed.items():
            say(f"warning: {name} cannot be used: {why}")
        if not models.ready:
            raise FirststepError("none of the models can be loaded")
        address = Address.of(host, listening.getsockname()[1])
        if address.token is not None:
            say(f"warning: served to the network at {host}; anybody with the address below can use the page")

        def show() -> None:
            console().print(f"{address.url}  (Ctrl-C stops)")
            if open:  # in a thread: with some browsers, open() blocks until they are closed
                threading.Thread(target=_open, args=(address.url,), daemon=True).start()

        with contextlib.suppress(KeyboardInterrupt):
            serve(Page(models, runs, report=say), listening, address, show)
    say("stopped")


def _open(url: str) -> None:
    with contextlib.suppress(webbrowser.Error):  # there is no browser; the address is printed anyway
        webbrowser.open(url)
