"""The picture in README.md: the script that makes it runs, and the picture shows what it shows now."""

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

from gb300serve.boot.phases import Phase
from scripts._screenshot import PICTURE
from tests.support.documents import recipes_on_port
from tests.support.free_port import free_port
from tests.support.program import LEADING, ROOT


def milestones(picture: Path) -> list[str]:
    """The phases as the picture shows them, and READY."""
    text = picture.read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    lines = [unescape(line).replace("\xa0", " ") for line in re.findall(r"<text [^>]*>(.*?)</text>", text)]
    expected = "|".join([*Phase, "READY"])
    found = (re.search(rf"^\[simulated\] +\d+ s  ({expected})\b", line) for line in lines)
    return [each[1] for each in found if each]


def test_the_picture_shows_the_boot_of_today(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not LEADING.match(name)}
    renewed = tmp_path / "up.svg"
    subprocess.run(
        [sys.executable, "scripts/_screenshot.py", str(renewed), "--sim-speed", "1000"], cwd=ROOT, check=True,
        env={**kept, "GB300SERVE_RECIPES": str(recipes_on_port(tmp_path, free_port()))}, timeout=120,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    shown = milestones(PICTURE)
    assert (shown[0], shown[-1]) == ("starting", "READY")
    assert milestones(renewed) == shown
