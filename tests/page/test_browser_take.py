"""Files exported from the page behave the same elsewhere; in a real browser."""

from __future__ import annotations

import csv
import io
import json
import shlex
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image
from playwright.sync_api import expect

from browsing import SQUARE, Tab
from firststep.deployment import load_deployed
from warm_cli import WarmCommands


def saved(tab: Tab, name: str, folder: Path) -> Path:
    """Return the file that a button downloads."""
    with tab.page.expect_download() as download:
        tab.button(name).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def thumbnails(tab: Tab) -> list[str | None]:
    images = tab.page.locator("button.thumb img, button.question img")
    return [image.get_attribute("src") for image in images.all()]


def test_command_and_python_lines_give_the_answers_of_the_page(
    tab: Tab, tmp_path: Path, runs_folder: Path, warm: WarmCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab.settled()
    answers = list(csv.DictReader(io.StringIO(saved(tab, "Predictions, CSV", tmp_path).read_text())))
    wanted = [row["prediction"] for row in answers if (row["model"], row["step"]) == ("shared", "1")]
    assert len(wanted) == 15
    assert len(answers) == 15 * 2 * 11
    assert all(abs(sum(float(row[f"p({name})"]) for name in set(tab.names())) - 1) < 1e-4 for row in answers)
    with zipfile.ZipFile(saved(tab, "Pictures, zip", tmp_path)) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path)
    (tmp_path / "shared").symlink_to(runs_folder / "shared")  # the page knows only the name of a run

    unzip, command = tab.page.get_by_label("In a terminal", exact=True).inner_text().splitlines()
    assert unzip == "unzip pictures.zip"
    words = shlex.split(command.replace(".onnx", ".safetensors"))[1:]
    done = warm.run([*words, "--format", "json"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {Path(row["image"]).name: row["class"] for row in json.loads(done.stdout)}
    assert [found[f"{number:03}.png"] for number in range(1, 16)] == wanted

    monkeypatch.chdir(tmp_path)
    lines = tab.page.get_by_label("In Python", exact=True).inner_text()
    printed: list[tuple[object, ...]] = []
    exec(lines, {"print": lambda *words: printed.append(words)})
    assert {Path(str(file)).name: name for file, name, _ in printed} == found


def test_adapted_model_and_pictures_are_downloaded(tab: Tab, tmp_path: Path) -> None:
    tab.settled()
    tab.page.get_by_label("Model", exact=True).select_option("plain")
    model = load_deployed(saved(tab, "safetensors", tmp_path))
    assert sorted(model.card.classes) == sorted(tab.names())
    picture = saved(tab, "Picture, PNG", tmp_path)
    with Image.open(picture) as image:
        assert image.width > 600
        assert len(image.convert("RGB").resize((64, 64)).getcolors(4096) or []) > 20  # not blank
    drawing = ElementTree.fromstring(saved(tab, "Picture, SVG", tmp_path).read_text())
    text = " ".join(drawing.itertext())
    assert "Condition number over steps" in text
    assert drawing.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert "Accuracy over steps" in text

    tab.teach_two()
    tab.draw(tab.page.get_by_label("Drawing pad for a question"), SQUARE)
    expect(tab.page.locator("svg.bars text.name title")).to_have_text(["A", "B"] * 2)
    tab.settled()
    drawing = ElementTree.fromstring(saved(tab, "Picture, SVG", tmp_path).read_text())
    text = " ".join(drawing.itertext())
    assert "Accuracy over steps" not in text  # it was that of the episode before
    assert "right" not in text  # nobody said what is true
    for panel in tab.page.locator(".model[data-status=done]").all():
        answer = [panel.locator(part).text_content() for part in (".big", ".words")]
        assert ": ".join(map(str, answer)) in text


def test_a_file_and_a_link_restore_the_examples(tab: Tab, tmp_path: Path) -> None:
    tab.settled()
    tab.button("Copy a link").click()
    short = tab.page.get_by_label("Link to these examples").input_value()
    assert len(short) < 300  # an episode that nobody has changed is its seed
    tab.teach_two()
    tab.draw(tab.page.get_by_label("Drawing pad for a question"), SQUARE)
    expect(tab.page.locator("button.question")).to_have_count(1)
    tab.page.get_by_label("In truth it is").select_option("A")
    before, names = thumbnails(tab), tab.names()
    file = saved(tab, "Save as a file", tmp_path)
    tab.button("Copy a link").click()
    link = tab.page.get_by_label("Link to these examples")
    expect(link).not_to_have_value(short)
    long = link.input_value()

    tab.button("Start empty").click()
    expect(tab.page.locator("button.question")).to_have_count(0)
    tab.page.locator("input[type=file][accept*=json]").set_input_files(file)
    expect(tab.page.locator("button.question")).to_have_count(1)
    assert (thumbnails(tab), tab.names()) == (before, names)

    first = tab.page
    tab.page = tab.open(long)
    tab.settled()
    assert (thumbnails(tab), tab.names()) == (before, names)
    expect(tab.page.get_by_label("In truth it is").locator("option:checked")).to_have_text("A")
    tab.page.reload()  # the tab keeps its examples
    tab.settled()
    assert thumbnails(tab) == before
    tab.page = tab.open(short)
    expect(tab.page.get_by_text("A random test episode")).to_be_visible()
    tab.page = first
    tab.page.locator("input[type=file][accept*=json]").set_input_files(
        {"name": "other.json", "mimeType": "application/json", "buffer": b'{"kind": "something else"}'}
    )
    expect(tab.page.locator("#take").get_by_role("alert")).to_contain_text("not a file of examples")
    tab.page = tab.open(long[:-40])
    expect(tab.page.get_by_text("This link is broken")).to_be_visible()
