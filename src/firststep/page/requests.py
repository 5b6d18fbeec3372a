"""Read requests within bounds, and check them before any work starts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Literal, TypeVar

import numpy as np
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from firststep.errors import FirststepError
from firststep.page.adapting import Lesson
from firststep.page.limits import Limits
from firststep.page.messages import Refused
from firststep.page.models import PageModel
from firststep.page.pictures import decoded
from firststep.utils import parse_json, to_record

Record = TypeVar("Record")
DRAINED = 4
"""How much of a too large request is still read and discarded, as a multiple of the limit: a browser whose
connection closes while it sends never sees the answer."""


@dataclass(frozen=True)
class ExampleClass:
    name: str
    examples: list[str]


@dataclass(frozen=True)
class Query:
    image: str
    label: int | None = None


@dataclass(frozen=True, kw_only=True)
class AdaptRequest:
    model: str
    classes: list[ExampleClass]
    queries: list[Query] = field(default_factory=list)
    steps: int = 10


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    model: str
    classes: list[ExampleClass]
    steps: int | Literal["auto"] = "auto"
    format: Literal["safetensors", "pt2", "onnx", "html"] = "safetensors"


@dataclass(frozen=True, kw_only=True)
class EpisodeRequest:
    model: str
    ways: int = 5
    shots: int = 5
    queries: int = 3
    seed: int = 0


async def read_json(request: Request, kind: type[Record], limits: Limits) -> Record:
    """Return the body as a ``kind``."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body must be application/json")
    async with _reading(limits):
        body = await _bounded(request, limits).body()
    try:
        content = parse_json(body, "the body")
    except FirststepError as error:
        raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from None
    return to_record(content, kind, "the body")


async def read_files(request: Request, limits: Limits) -> list[UploadFile]:
    """Return the files of a form, in order; the caller closes them."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body must be multipart/form-data")
    try:
        async with _reading(limits):
            form = await _bounded(request, limits).form(max_files=limits.files, max_fields=limits.files)
    except HTTPException as error:  # Starlette's own checks of the form
        status = HTTPStatus(error.status_code)
        raise Refused(status, f"the form cannot be read: {error.detail}") from None
    files = [value for key, value in form.multi_items() if key == "file" and isinstance(value, UploadFile)]
    if not files:
        await form.close()
        raise Refused(HTTPStatus.BAD_REQUEST, "the form has no file in the field `file`")
    return files


def checked_lesson(
    model: PageModel, classes: Sequence[ExampleClass], queries: Sequence[Query], limits: Limits
) -> Lesson:
    """Return the pictures of a request as the model takes them; ``FirststepError`` if they do not fit."""
    most = min(limits.classes, model.most_classes or limits.classes)
    if not 2 <= len(classes) <= most:
        raise FirststepError(f"{model.name} takes 2 to {most} classes, not {len(classes)}")
    for number, each in enumerate(classes, 1):
        if not each.name.strip() or len(each.name) > limits.name_length:
            raise FirststepError(f"class {number} needs a name of 1 to {limits.name_length} characters")
        if not each.examples:
            raise FirststepError(f"class {number} has no example")
    total = sum(len(each.examples) for each in classes)
    _at_most("examples", total, limits.examples)
    _at_most("queries", len(queries), limits.queries)
    labels = [query.label for query in queries]
    if any(label is not None and not 0 <= label < len(classes) for label in labels):
        raise FirststepError(f"labels of queries must be 0..{len(classes) - 1} or null")
    recipe = model.preprocessing
    examples = [
        decoded(text, recipe, f"example {number} of class {place}")
        for place, each in enumerate(classes, 1)
        for number, text in enumerate(each.examples, 1)
    ]
    asked = [decoded(query.image, recipe, f"query {number}") for number, query in enumerate(queries, 1)]
    blank = np.empty((0, recipe.image_size, recipe.image_size, recipe.channels), np.uint8)
    return Lesson(
        classes=[each.name for each in classes],
        examples=np.stack(examples),
        labels=[place for place, each in enumerate(classes) for _ in each.examples],
        queries=np.stack(asked) if asked else blank,
        expected=labels,
    )


def check_steps(steps: int, limits: Limits) -> None:
    if not 0 <= steps <= limits.steps:
        raise FirststepError(f"steps must be 0..{limits.steps}, not {steps}")


def _at_most(what: str, count: int, most: int) -> None:
    if count > most:
        raise FirststepError(f"{count} {what} are too many: at most {most} in all")


class _TooLarge(MultiPartException):
    """An error of the class for which the form reader closes its open files."""

    def __init__(self) -> None:
        super().__init__("too large")


class _reading:
    """Answer bodies that are too large or too slow, and clients that disconnect."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._deadline = asyncio.timeout(limits.seconds_to_upload)

    async def __aenter__(self) -> None:
        await self._deadline.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        try:
            await self._deadline.__aexit__(kind, error, trace)  # type: ignore[arg-type]
        except TimeoutError:
            raise Refused(HTTPStatus.REQUEST_TIMEOUT, "the request took too long to arrive") from None
        if isinstance(error, _TooLarge) or (error and isinstance(error.__context__, _TooLarge)):
            most = self._limits.upload_bytes // 2**20
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the request is larger than {most} MiB"
            ) from None
        if isinstance(error, ClientDisconnect):
            raise Refused(HTTPStatus.BAD_REQUEST, "the client has gone") from None


def _bounded(request: Request, limits: Limits) -> Request:
    return Request(request.scope, _limited(request.receive, limits.upload_bytes))


def _limited(receive: Receive, most: int) -> Receive:
    read = 0

    async def bounded() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read <= most:
            return message
        while message.get("more_body") and read <= DRAINED * most:
            message = await receive()
            read += len(message.get("body", b""))
        raise _TooLarge

    return bounded
