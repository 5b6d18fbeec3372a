"""Images of every mode come out as a viewer would show them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from firststep.data import Preprocessing, load_image
from firststep.errors import FirststepError

RED = (230, 20, 30)


def saved(tmp_path: Path, image: Image.Image, name: str, **options: object) -> Path:
    image.save(tmp_path / name, **options)
    return tmp_path / name


def flat(mode: str, colour: object) -> Image.Image:
    return Image.new(mode, (40, 40), colour)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("image", "name", "expected", "tolerance"),
    [
        (flat("RGB", RED), "rgb.png", RED, 0),
        (flat("RGB", RED), "rgb.jpg", RED, 4),
        (flat("RGB", RED).convert("CMYK"), "cmyk.jpg", RED, 6),
        (flat("RGB", RED).convert("CMYK"), "cmyk.tif", RED, 2),
        (flat("RGB", RED).quantize(4), "palette.png", RED, 2),
        (flat("RGB", RED).quantize(4), "palette.gif", RED, 2),
        (flat("L", 77), "grey.png", (77, 77, 77), 0),
        (flat("1", 1), "bit.png", (255, 255, 255), 0),
        (flat("LA", (77, 255)), "grey-alpha.png", (77, 77, 77), 0),
        (flat("RGBA", (0, 0, 0, 0)), "clear.png", (255, 255, 255), 0),
        (flat("RGBA", (0, 0, 0, 128)), "half.png", (127, 127, 127), 1),
        (Image.fromarray(np.full((40, 40), 77 * 257, np.uint16)), "deep.png", (77, 77, 77), 0),
    ],
)
def test_modes(
    image: Image.Image, name: str, expected: tuple[int, ...], tolerance: int, tmp_path: Path
) -> None:
    path = saved(tmp_path, image, name)
    rgb = load_image(path, 16)
    assert rgb.shape == (16, 16, 3)
    assert np.abs(rgb.astype(int) - expected).max() <= tolerance
    grey = load_image(path, 16, channels=1)
    luma = round(0.299 * expected[0] + 0.587 * expected[1] + 0.114 * expected[2])
    assert grey.shape == (16, 16, 1)
    assert np.abs(grey.astype(int) - luma).max() <= tolerance + 1


def test_exif_rotation_is_undone(tmp_path: Path) -> None:
    pixels = np.zeros((40, 40, 3), np.uint8)
    pixels[:20, :, 0] = 255  # the camera stored red on top
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate clockwise: red is shown on the right
    upright = load_image(saved(tmp_path, Image.fromarray(pixels), "turned.png", exif=exif), 40)
    assert upright[:, 22:, 0].min() == 255
    assert upright[:, :18].max() == 0


def test_transparent_palette_is_shown_on_white(tmp_path: Path) -> None:
    image = flat("RGB", RED).quantize(4)
    path = saved(tmp_path, image, "clear.png", transparency=image.getpixel((0, 0)))
    assert load_image(path, 16).min() == 255


def test_centre_is_kept_with_its_proportions(tmp_path: Path) -> None:
    pixels = np.zeros((30, 90, 3), np.uint8)
    pixels[:, 30:60] = 200
    assert load_image(saved(tmp_path, Image.fromarray(pixels), "wide.png"), 30).min() == 200


@pytest.mark.parametrize(("paper", "ink"), [(255, 0), (0, 255)])
def test_ink_is_bright_whatever_the_paper(paper: int, ink: int, tmp_path: Path) -> None:
    pixels = np.full((20, 20), paper, np.uint8)
    pixels[8:12, 4:16] = ink
    drawn = load_image(saved(tmp_path, Image.fromarray(pixels), "drawing.png"), 20, channels=1, ink=True)
    assert drawn[0, 0, 0] == 0
    assert drawn[10, 10, 0] == 255


def test_normalise() -> None:
    pixels = np.array([[[0, 128, 255]]], np.uint8)[None]
    normal = Preprocessing(image_size=4).normalise(pixels)
    assert normal.shape == (1, 3, 1, 1)
    expected = [
        (v / 255 - m) / s
        for v, m, s in zip((0, 128, 255), (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), strict=True)
    ]
    np.testing.assert_allclose(normal.ravel(), expected, rtol=1e-5)
    ink = Preprocessing(image_size=4, channels=1, ink=True)
    np.testing.assert_allclose(ink.normalise(np.array([[[[0], [255]]]], np.uint8)).ravel(), [0, 1])
    assert Preprocessing(**ink.describe()) == ink


@pytest.mark.parametrize("channels", [1, 3])
def test_symmetric_normalisation_is_written_down_and_the_usual_one_changes_no_fingerprint(
    channels: int,
) -> None:
    symmetric = Preprocessing(image_size=4, channels=channels, normalisation="symmetric")
    pixels = np.arange(16 * channels, dtype=np.uint8).reshape(1, 4, 4, channels) * 5
    expected = (np.moveaxis(pixels, -1, 1).astype(np.float64) - 127) / 128
    np.testing.assert_allclose(symmetric.normalise(pixels), expected, atol=1e-6)
    assert Preprocessing(**symmetric.describe()) == symmetric
    assert Preprocessing(image_size=4).describe() == {"image_size": 4, "channels": 3, "ink": False}
    with pytest.raises(FirststepError, match="unknown normalisation 'symmetrick'; did you mean symmetric"):
        Preprocessing(image_size=4, normalisation="symmetrick")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("text.jpg", "not an image"),
        ("cut.jpg", "broken image"),
        ("none.png", "does not exist"),
        ("", "is a folder"),
    ],
)
def test_images_that_cannot_be_read_are_named(name: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("not an image")
    whole = saved(tmp_path, Image.effect_noise((200, 200), 80), "cut.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FirststepError, match=says) as caught:
        load_image(tmp_path / name, 32)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)
