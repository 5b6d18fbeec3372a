"""The page sees of a picture exactly what ``firststep adapt`` would, and bounds what it is sent."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from firststep.data import Preprocessing
from firststep.evaluation._internal import load_pixels
from firststep.page import Limits, Models
from firststep.page.pictures import distinct, seen
from served_page import ServedPage, png, served

KEY = "16-grey-ink"


def stroke(size: tuple[int, int] = (40, 40)) -> np.ndarray:
    """Draw a light hook on black that no rotation maps to itself."""
    drawn = np.zeros((size[1], size[0]), np.uint8)
    drawn[size[1] // 5 : size[1] // 5 + 5, size[0] // 8 : size[0] // 2] = 230
    drawn[size[1] // 5 : size[1] * 3 // 4, size[0] // 8 : size[0] // 8 + 5] = 150
    return drawn


def saved(image: Image.Image, format: str = "PNG", **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def turned() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be shown after a quarter turn
    return saved(Image.fromarray(stroke((60, 30))), "JPEG", exif=exif, quality=95)


def see_through() -> bytes:
    ink = np.zeros((40, 40, 4), np.uint8)
    ink[..., 3] = stroke()  # black ink on nothing: dark on light paper
    return saved(Image.fromarray(ink))


def deep() -> bytes:
    return saved(Image.fromarray(stroke().astype(np.uint16) * 257))


ODD = {
    "exif.jpg": turned,
    "alpha.png": see_through,
    "16 bit.png": deep,
    "dark on light.png": lambda: png(255 - stroke()),
    "light on dark.png": lambda: png(stroke()),
    "wide.png": lambda: png(stroke((90, 30))),
    "tall.bmp": lambda: saved(Image.fromarray(stroke((20, 71))), "BMP"),
    "palette.gif": lambda: saved(Image.fromarray(stroke()).convert("P"), "GIF"),
    "colours.webp": lambda: saved(
        Image.fromarray(np.stack([stroke(), 255 - stroke(), stroke()], -1)), "WEBP"
    ),
    "cmyk.jpg": lambda: saved(Image.fromarray(stroke()).convert("CMYK"), "JPEG"),
    "one pixel.png": lambda: png(np.full((1, 1), 90, np.uint8)),
}


def decoded(text: str) -> np.ndarray:
    with Image.open(io.BytesIO(base64.b64decode(text))) as image:
        assert image.format == "PNG"
        return np.asarray(image)


def test_odd_pictures_are_seen_as_adapt_sees_them(page: ServedPage, models: Models, tmp_path: Path) -> None:
    files = [(name, make()) for name, make in ODD.items()]
    results = page.see(files).json()["results"]
    assert [result["name"] for result in results] == list(ODD)
    recipe = models.ready["plain"].preprocessing
    for (name, content), result in zip(files, results, strict=True):
        (tmp_path / name).write_bytes(content)
        expected = load_pixels([tmp_path / name], recipe)[0]
        assert list(result["seen"]) == [KEY]
        np.testing.assert_array_equal(decoded(result["seen"][KEY])[..., None], expected, err_msg=name)


def test_colours_of_photographs_are_seen_too(tmp_path: Path) -> None:
    recipe = Preprocessing(image_size=24, channels=3, normalisation="symmetric")
    for name, make in ODD.items():
        (tmp_path / name).write_bytes(make())
        found = seen(io.BytesIO(make()), name, distinct([recipe]), 10**6)
        np.testing.assert_array_equal(decoded(found["24-rgb"]), load_pixels([tmp_path / name], recipe)[0])


def test_what_is_no_picture_gets_a_line_and_the_others_are_seen(page: ServedPage) -> None:
    good = png(stroke())
    files = [
        ("a.png", good),
        ("notes.txt", b"hello"),
        ("<img src=x onerror=alert(1)>.png", good[:60]),
        ("empty.png", b""),
        ("b.png", good),
    ]
    results = page.see(files).json()["results"]
    assert ["error" in result for result in results] == [False, True, True, True, False]
    assert results[1]["error"].startswith("notes.txt is not an image")
    assert results[2]["name"] == "<img src=x onerror=alert(1)>.png"  # text, to be shown as text
    assert all("\n" not in result.get("error", "") for result in results)


def test_the_name_of_a_file_is_never_a_path_to_it(page: ServedPage, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(stroke()))
    (result,) = page.see([(str(secret), b"not a picture")]).json()["results"]
    assert "error" in result
    assert str(tmp_path) not in result["error"]


def bomb(side: int) -> bytes:
    """Return an almost empty PNG that declares side² pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    )


def test_too_many_pixels_are_refused_before_they_are_decoded(page: ServedPage) -> None:
    results = page.see([("large.png", bomb(8000)), ("huge.png", bomb(60_000))]).json()["results"]
    assert "8000 x 8000 pixels, more than 50 million" in results[0]["error"]
    assert "huge.png is too large" in results[1]["error"]


def test_uploads_are_bounded_in_number_and_bytes(models: Models, runs_folder: Path) -> None:
    limits = Limits(files=3, upload_bytes=20_000)
    with served(models, runs_folder, limits=limits) as page:
        good = png(stroke())
        assert page.see([("a.png", good)] * 3).status == 200
        answer = page.see([("a.png", good)] * 4)
        assert answer.status == 400
        assert "Too many files" in answer.error
        answer = page.see([("a.png", bytes(30_000))])
        assert answer.status == 413
        assert "larger than" in answer.error
        assert page.ask("/api/adapt", b" " * 30_000).status == 413
        answer = page.ask("/api/adapt", b" " * 1_000_000)  # more than is read and thrown away
        assert answer.status == 413
        assert page.see([("a.png", good)]).status == 200


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("multipart/form-data", b"x", 400),
        ("multipart/form-data; boundary=y", b"--y\r\nbroken", 400),
        ("multipart/form-data; boundary=y", b"", 400),
        ("application/json", b"{}", 415),
    ],
)
def test_a_form_that_cannot_be_read_is_refused(page: ServedPage, kind: str, body: bytes, status: int) -> None:
    answer = page.ask("/api/see", body, headers={"Content-Type": kind})
    assert answer.status == status
    assert answer.error


def test_a_form_with_other_fields_only_is_refused(page: ServedPage) -> None:
    assert (
        page.see([("a.png", png(stroke()))], field="other").error
        == "the form has no file in the field `file`"
    )
