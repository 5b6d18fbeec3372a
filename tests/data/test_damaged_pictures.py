"""Damaged pictures in every format that Pillow writes are decoded or refused by name, without a warning."""

from __future__ import annotations

import io
import random
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from firststep.data import Preprocessing, decode, load_image
from firststep.data.pictures import FORMATS
from firststep.errors import FirststepError

Image.init()
READ = sorted(name for name in Image.SAVE if name in (*FORMATS, "MPO"))
OTHERS = sorted(set(Image.SAVE) - set(READ))
RECIPE = Preprocessing(image_size=16)


def noise(size: tuple[int, int] = (40, 30)) -> Image.Image:
    generator = np.random.default_rng(0)
    return Image.fromarray(generator.integers(0, 256, (*size[::-1], 3), dtype=np.uint8))


def encoded(kind: str, image: Image.Image | None = None, **options: object) -> bytes | None:
    for mode in ("1",) if "group4" in options.values() else ("RGB", "L", "P", "1"):
        file = io.BytesIO()
        try:
            (image or noise()).convert(mode).save(file, kind, **options)
        except (OSError, ValueError, KeyError):
            continue
        return file.getvalue()
    return None


def damaged(whole: bytes, generator: random.Random) -> bytes:
    content = bytearray(whole)
    for _ in range(generator.choice((1, 3, 20))):
        place = generator.randrange(min(len(content), generator.choice((64, 400, 10**6))))
        content[place] = generator.choice((0, 255, generator.randrange(256)))
    if generator.random() < 0.3:
        del content[generator.randrange(len(content)) :]
    return bytes(content)


def decoded_or_refused(content: bytes) -> bool:
    try:
        pixels = decode(io.BytesIO(content), "holiday.png", RECIPE)
    except FirststepError as error:
        message = str(error)
    else:
        assert pixels.shape == (16, 16, 3)
        assert pixels.dtype == np.uint8
        return True
    assert message.startswith("holiday.png ")
    assert "\n" not in message
    return False


def samples() -> dict[str, bytes]:
    found = {kind: encoded(kind) for kind in READ}
    for compression in ("tiff_lzw", "tiff_adobe_deflate", "jpeg", "packbits", "group4"):
        found[f"TIFF {compression}"] = encoded("TIFF", compression=compression)
    for mode in ("I;16", "F", "LAB", "CMYK", "RGBA", "LA"):
        file = io.BytesIO()
        kind = "TIFF" if mode in ("F", "LAB", "CMYK") else "PNG"
        image = Image.new(mode, (20, 20)) if mode in ("I;16", "F", "LAB") else noise().convert(mode)
        image.save(file, kind)
        found[f"{kind} {mode}"] = file.getvalue()
    frames = io.BytesIO()
    noise().save(frames, "GIF", save_all=True, append_images=[noise((50, 50))])
    found["GIF animated"] = frames.getvalue()
    return {name: content for name, content in found.items() if content}


SAMPLES = samples()


@pytest.mark.parametrize("kind", SAMPLES)
def test_damaged(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    generator = random.Random(kind)
    contents = [damaged(SAMPLES[kind], generator) for _ in range(60)]
    with ThreadPoolExecutor(4) as pool:  # threads, as in building a cache
        list(pool.map(decoded_or_refused, contents))
    assert capfd.readouterr() == ("", "")


def test_undamaged() -> None:
    for kind, content in SAMPLES.items():
        assert decoded_or_refused(content) == (kind not in ("TIFF F", "TIFF LAB")), kind


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # raised on writing
def test_other_formats_are_refused(kind: str) -> None:
    content = encoded(kind, noise((32, 32)))
    if content is None:
        pytest.skip("Pillow cannot write it here")
    with pytest.raises(FirststepError, match=r"^a\.png is not an image \(PNG, JPEG"):
        decode(io.BytesIO(content), "a.png", RECIPE)


def png(width: int, height: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    packed = chunk(b"IDAT", zlib.compress(bytes(1000)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + packed + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("width", "height", "says"),
    [
        (10_000, 9_000, "is too large (10000 x 9000 pixels, more than 89 million pixels)"),
        (60_000, 60_000, "is too large (more than 89 million pixels)"),
        (2**31 - 1, 2**31 - 1, "is "),
        (0, 10, "is "),
    ],
)
def test_sizes_that_no_picture_has(width: int, height: int, says: str) -> None:
    with pytest.raises(FirststepError) as caught:
        decode(io.BytesIO(png(width, height)), "a.png", RECIPE)
    assert f"a.png {says}" in str(caught.value)


@pytest.mark.parametrize(
    ("image", "says"),
    [
        (Image.fromarray(np.full((9, 9), np.nan, np.float32)), "holds floating-point numbers"),
        (Image.new("LAB", (9, 9)), "holds LAB colours"),
        (Image.fromarray(np.full((9, 9), 70_000, np.int32)), "holds grey values from 70000 to 70000"),
    ],
)
def test_values_without_one_look(image: Image.Image, says: str, tmp_path: Path) -> None:
    image.save(tmp_path / "a.tif")
    with pytest.raises(FirststepError, match=rf"a\.tif {says}"):
        load_image(tmp_path / "a.tif", 16)


def test_first_frame_of_many(tmp_path: Path) -> None:
    first, second = Image.new("RGB", (20, 20), (200, 0, 0)), Image.new("RGB", (20, 20), (0, 200, 0))
    for name in ("a.gif", "a.tif", "a.webp", "a.png"):
        options = {"lossless": True} if name == "a.webp" else {}
        first.save(tmp_path / name, save_all=True, append_images=[second], **options)
        assert load_image(tmp_path / name, 16)[0, 0].tolist() == [200, 0, 0]


def test_own_mistakes_are_not_called_broken_images(monkeypatch: pytest.MonkeyPatch) -> None:
    def mistake(*ignored: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(Preprocessing, "fitted", mistake)
    with pytest.raises(KeyError, match="ours"):
        decode(io.BytesIO(SAMPLES["PNG"]), "a.png", RECIPE)
