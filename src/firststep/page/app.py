"""The routes of the page and their answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from firststep.errors import FirststepError, reason
from firststep.page.episodes import EpisodeSource
from firststep.page.exporting import export
from firststep.page.lessons import Teacher
from firststep.page.limits import Limits
from firststep.page.messages import Refused, one_line, without_paths
from firststep.page.models import Models
from firststep.page.pictures import seen
from firststep.page.requests import (
    AdaptRequest,
    EpisodeRequest,
    ExportRequest,
    check_steps,
    checked_lesson,
    read_files,
    read_json,
)
from firststep.page.runs import RunsFolder
from firststep.page.security import Address, Guard
from firststep.page.static_files import TYPES, served
from firststep.page.streaming import Lines, while_connected
from firststep.page.turns import Turns
from firststep.training import package_version

Answer = Callable[[Request], Awaitable[Any]]


class Page:
    """The page of some models. It stores nothing of what it receives.

    Args:
        models: the models to adapt.
        runs: folder of the runs to watch.
        limits: limits of requests.
        report: called with one line per error that is not the client's.
    """

    def __init__(
        self,
        models: Models,
        runs: Path,
        limits: Limits | None = None,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._models, self._runs, self._report = models, RunsFolder(runs), report
        self._limits = limits or Limits()
        self._episodes = EpisodeSource()
        self._adaptations = Turns(self._limits.at_once, self._limits.waiting)
        self._teacher = Teacher(self._adaptations, self._describe)
        # Pictures and runs have their own threads, so they do not wait for adaptations.
        self._quick = Turns(self._limits.at_once, self._limits.waiting)

    def app(self, address: Address) -> ASGIApp:
        """Return the ASGI application for an address."""
        routes = [
            Route("/", self._guarded(self._index), methods=["GET"]),
            Route("/static/{name:path}", self._guarded(self._static), methods=["GET"]),
            Route("/api/models", self._guarded(self._list_models), methods=["GET"]),
            Route("/api/see", self._guarded(self._see), methods=["POST"]),
            Route("/api/adapt", self._guarded(self._adapt), methods=["POST"]),
            Route("/api/episode", self._guarded(self._episode), methods=["POST"]),
            Route("/api/export", self._guarded(self._export), methods=["POST"]),
            Route("/api/runs", self._guarded(self._list_runs), methods=["GET"]),
            Route("/api/runs/{key:path}", self._guarded(self._run), methods=["GET"]),
        ]
        handlers = {HTTPException: _http_error}
        inner = Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]
        return Guard(inner, address)

    def close(self) -> None:
        """Shut down the threads without waiting for their current jobs."""
        self._adaptations.close()
        self._quick.close()

    def _guarded(self, answer: Answer) -> Answer:
        """Turn every exception of a route into a status and one line."""

        async def guarded(request: Request) -> Any:
            try:
                return await answer(request)
            except Refused as error:
                return _error(error.status, one_line(error))
            except FirststepError as error:
                return _error(HTTPStatus.UNPROCESSABLE_ENTITY, self._describe(error))
            except HTTPException:
                raise
            except Exception as error:
                return _error(HTTPStatus.INTERNAL_SERVER_ERROR, self._describe(error))

        return guarded

    def _describe(self, error: BaseException) -> str:
        if not isinstance(error, FirststepError | Refused):
            self._report(f"a request failed: {reason(error)}")
        return one_line(error)

    async def _index(self, request: Request) -> Response:
        return _file("index.html")

    async def _static(self, request: Request) -> Response:
        return _file(request.path_params["name"])

    async def _list_models(self, request: Request) -> Response:
        return Json(
            {
                "version": package_version(),
                "models": self._models.describe(),
                "limits": self._limits.describe(),
            }
        )

    async def _see(self, request: Request) -> Response:
        files = await read_files(request, self._limits)
        by = self._models.preprocessings()
        results: list[dict[str, Any]] = []
        try:
            for file in files:
                name = (file.filename or "picture")[: self._limits.name_length]
                try:
                    found = await self._quick.run(
                        lambda place, stop, file=file, name=name: seen(  # type: ignore[misc]
                            file.file, name, by, self._limits.upload_pixels
                        )
                    )
                    results.append({"name": name, "seen": found})
                except FirststepError as error:
                    results.append({"name": name, "error": without_paths(str(error))})
        finally:
            for file in files:
                await file.close()
        return Json({"results": results})

    async def _adapt(self, request: Request) -> Any:
        asked = await read_json(request, AdaptRequest, self._limits)
        check_steps(asked.steps, self._limits)
        model = self._models.get(asked.model)
        lesson = await self._quick.run(
            lambda place, stop: checked_lesson(model, asked.classes, asked.queries, self._limits)
        )
        self._adaptations.check_open()
        return Lines(self._teacher.give(model, lesson, asked.steps))

    async def _episode(self, request: Request) -> Response:
        asked = await read_json(request, EpisodeRequest, self._limits)
        model = self._models.get(asked.model)
        draw = partial(self._episodes.draw, model, asked, self._models.preprocessings(), self._limits)
        return Json(await self._quick.run(lambda place, stop: draw()))

    async def _export(self, request: Request) -> Response:
        asked = await read_json(request, ExportRequest, self._limits)
        steps = None if asked.steps == "auto" else asked.steps
        if steps is not None:
            check_steps(steps, self._limits)
        model = self._models.get(asked.model)
        lesson = await self._quick.run(
            lambda place, stop: checked_lesson(model, asked.classes, (), self._limits)
        )
        content = await while_connected(
            request.receive,
            self._adaptations.run(
                lambda place, stop: export(model, model.learner(place), lesson, steps, asked.format, stop)
            ),
        )
        name = quote(f"{model.name.rpartition(':')[2]}-adapted.{asked.format}", safe="")
        return Response(
            content,
            media_type="application/octet-stream",
            headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"},
        )

    async def _list_runs(self, request: Request) -> Response:
        return Json(await self._quick.run(lambda place, stop: self._runs.describe()))

    async def _run(self, request: Request) -> Response:
        key = request.path_params["key"]
        return Json(await self._quick.run(lambda place, stop: self._runs.curves(key)))


class Json(JSONResponse):
    def render(self, content: Any) -> bytes:
        """Encode in ASCII: file names may contain undecodable bytes."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def _file(name: str) -> Response:
    path = served().get(name)
    if path is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return Response(path.read_bytes(), media_type=TYPES[path.suffix])


def _error(status: int, message: str) -> Json:
    return Json({"error": message}, status_code=int(status))


async def _http_error(request: Request, error: HTTPException) -> Json:
    return _error(error.status_code, HTTPStatus(error.status_code).phrase.lower())
