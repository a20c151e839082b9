"""README.md and the guides: the commands that they show work, and their tables are complete.

Their commands run on the simulated Station, in a directory and with a port of their own. What needs a Station or Docker
states that in the first line of its block, and is only parsed.
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
import typer
from typer.core import TyperGroup

from gb300serve.cli.app import COMMANDS, app
from tests.support.documents import (
    DOCUMENTS,
    GUIDES,
    PORT,
    README,
    ShellLine,
    blocks,
    inline_code,
    name_of,
    recipes_on_port,
    shell_lines,
    shown,
)
from tests.support.free_port import free_port
from tests.support.invoke import run
from tests.support.program import ROOT, Program

RUN = [path for path in DOCUMENTS if any(block.is_run for block in blocks(path))]
# These leave their connections to the end of their process.
TALKS_TO_AN_ENGINE = ("status", "rollback", "probe")
FASTER = ("--sim-speed", "1600")
PROGRAMS = ("gb300serve", "scripts/gb300serve")


@dataclass
class Reader:
    """Someone who types the commands of a guide, in a new home directory."""

    program: Program
    port: str

    def type(self, line: ShellLine) -> None:
        """Run one command and compare its exit code with the stated one."""
        words = line.words
        if not words or (words[0] == "curl" and shutil.which("curl") is None):
            return
        if words[0] in PROGRAMS and words[1] == "up" and "--show-steps" not in words:
            code, output = self._up(words[2:])
        elif words[0] == "gb300serve" and words[1] == "rollback" and "--show-steps" not in words:
            done = self.program.run(*words[1:], *FASTER)
            code, output = done.code, done.err
        elif words[0] == "gb300serve" and not {"<", "|", "-", *TALKS_TO_AN_ENGINE} & set(words):
            code, output = self._in_this_process(words[1:])
        else:
            code, output = self._in_a_shell(line.text)
        assert code == line.exit_code, f"{line.text}\n{output}"

    def _up(self, words: list[str]) -> tuple[int, str]:
        """Until READY, and then Ctrl-C; with `--wait` it ends by itself."""
        if "--wait" in words:
            ended = self.program.run("up", *words, *FASTER)
            return ended.code, ended.err
        done = self.program.up_until_ready(*words, *(() if "--sim-speed" in words else FASTER))
        is_ready = done.code == 130 and "READY" in done.err
        return (0 if is_ready else done.code), done.err

    def _in_this_process(self, words: list[str]) -> tuple[int, str]:
        """As a shell would, and without the half second that a new process takes."""
        is_redirected = words[-2:-1] == [">"]
        answer = run(*(words[:-2] if is_redirected else words), variables=self.program.environment)
        if is_redirected:
            (self.program.home / words[-1]).write_text(answer.out, encoding="utf-8")
        return answer.code, answer.out + answer.err

    def _in_a_shell(self, text: str) -> tuple[int, str]:
        done = subprocess.run(
            ["sh", "-euc", f"exec 2>&1; {text.replace(PORT, self.port)}"], cwd=self.program.home,
            env=self.program.environment, check=False, text=True, timeout=60, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        return done.returncode, done.stdout


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """The shipped recipes with another port, and `gb300serve` on PATH."""
    port = free_port()
    recipes = recipes_on_port(tmp_path, port)
    programs = tmp_path / "programs"
    for name, command in (
        ("gb300serve", f'{shlex.quote(sys.executable)} -m gb300serve "$@"'),
        ("test", "true  # the tests do not start themselves"),
    ):
        script = programs / name
        programs.mkdir(exist_ok=True)
        script.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        script.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    (home / "scripts").symlink_to(programs)
    program = Program(home, {"GB300SERVE_RECIPES": str(recipes)})
    program.variables["PATH"] = f"{programs}:{program.environment['PATH']}"
    yield Reader(program, str(port))
    if any(home.glob(".local/state/gb300serve/runs/*")):
        program.run("down", "--on", "sim", "--timeout", "1")


@pytest.mark.parametrize("path", RUN, ids=name_of)
def test_the_commands_of_a_document_run(path: Path, reader: Reader) -> None:
    for block in blocks(path):
        if block.language == "sh" and block.is_run:
            for line in shell_lines(block.text):
                reader.type(line)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_a_shown_output_is_what_the_command_prints(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text(encoding="utf-8")
    for command, output in [pair for block in blocks(path) if block.language == "console" for pair in shown(block)]:
        program, *words = shlex.split(command)
        assert program == "gb300serve"
        answer = run(*words)
        text = text.replace(f"$ {command}\n{output}", f"$ {command}\n{answer.out}{answer.err}")
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, "--update-golden writes it anew"


def test_the_walk_on_a_station_works_on_the_simulated_one(reader: Reader) -> None:
    """Everything but the installation and the downloads, which the next test compares with what doctor advises."""
    (walk,) = (block for block in blocks(README) if block.text.startswith("# needs a Station"))
    typed = []
    for line in shell_lines(walk.text):
        words = line.words
        if words[:1] == ["gb300serve"]:
            reader.type(ShellLine(f"{shlex.join(words)} --on sim", 0))
            typed.append(words[1])
        elif words[:1] and words[0] in {"mkdir", "cat", "curl"}:
            reader.type(line)
            typed.append(words[0])
    assert typed == ["mkdir", "cat", "doctor", "doctor", "up", "status", "curl", "down"]
    assert (reader.program.home / ".config/gb300serve/site.yaml").is_file()


def test_the_walk_downloads_what_the_recipe_names(tmp_path: Path) -> None:
    text = README.read_text(encoding="utf-8")
    site = tmp_path / "site.yaml"
    site.write_text(re.findall(r"<<'YAML'\n(.*?)^YAML$", text, re.MULTILINE | re.DOTALL)[0], encoding="utf-8")
    plan = run("compile", "v14", "--json", "--site", site).document
    recipe = run("show", "v14", "--json").document["recipe"]
    model, cache = (mount["source"] for mount in plan["container"]["mounts"])
    download = f"hf download {recipe['model']['repo']} --revision {recipe['model']['revision']} --local-dir {model}\n"
    image = recipe["image"]
    assert download in text
    assert f"docker pull {image['repository']}@{image['digest']}\n" in text
    assert f'sudo install -d -o "$USER" {Path(model).parent} {cache}\n' in text


def parsed(words: list[str]) -> None:
    """Raises when the command line is wrong; runs nothing."""
    group = cast("TyperGroup", typer.main.get_command(app))
    context = typer.Context(group, info_name="gb300serve")
    if words[0].startswith("--"):
        return
    command = group.get_command(context, words[0])
    assert command is not None, words
    if len(words) == 1 or "--help" in words:
        return
    command.make_context(words[0], words[1:], parent=context)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_a_command_that_is_not_run_is_at_least_a_valid_one(path: Path) -> None:
    lines = [
        line.words
        for block in blocks(path)
        if block.language == "sh" and not block.is_run
        for line in shell_lines(block.text)
    ]
    inline = [shlex.split(code) for code in inline_code(path) if code.startswith("gb300serve ")]
    for words in [*lines, *inline]:
        if words[:1] == ["gb300serve"]:
            end = next((at for at, word in enumerate(words) if word in {">", "|", "<"}), len(words))
            parsed(words[1:end])
        elif words[:1] and words[0].startswith("scripts/"):
            assert (ROOT / words[0]).is_file()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_options_of_a_command_exist(path: Path) -> None:
    """`up --stack-dump` in a sentence."""
    group = cast("TyperGroup", typer.main.get_command(app))
    context = typer.Context(group)
    for code in inline_code(path):
        name, *words = code.removeprefix("gb300serve ").split()
        options = [word for word in words if word.startswith("--")]
        command = group.get_command(context, name) if options else None
        if command is not None:
            assert set(options) - {"--help"} <= {option for each in command.params for option in each.opts}, code


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_shown_yaml_is_valid(path: Path, tmp_path: Path) -> None:
    for number, block in enumerate(blocks(path)):
        if block.language != "yaml" or block.text.startswith("repos:"):
            continue
        if block.text.startswith("format: gb300serve.site/1\n"):
            site = tmp_path / f"{number}.yaml"
            site.write_text(block.text, encoding="utf-8")
            answer = run("compile", "deepseek-v4.1-flash/v14", "--site", site)
        elif block.text.startswith("format: gb300serve.lane/1\n"):
            lane = tmp_path / "lanes" / "deepseek-v4.1-flash" / "lane.yaml"
            lane.parent.mkdir(parents=True, exist_ok=True)
            lane.write_text(block.text, encoding="utf-8")
            answer = run("compile", "deepseek-v4.1-flash", "--recipes", lane.parents[1])
        else:
            head = "format: gb300serve/1\nlane: deepseek-v4.1-flash\ntitle: shown\nstatus: draft\nextends: v14\n"
            recipe = tmp_path / "recipes" / "deepseek-v4.1-flash" / f"b{number}.yaml"
            recipe.parent.mkdir(parents=True, exist_ok=True)
            recipe.write_text(f"{head}release: b{number}\n{block.text}", encoding="utf-8")
            answer = run("show", recipe, "--recipes", recipe.parents[1], "--recipes", ROOT / "recipes")
        assert answer.code == 0, answer.err


def test_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


def test_readme_lists_every_command_and_every_guide() -> None:
    text = README.read_text(encoding="utf-8")
    table = text.split("## Commands", 1)[1].split("REF is", 1)[0]
    assert sorted(re.findall(r"^\| `(\w+)", table, re.MULTILINE)) == sorted(COMMANDS)
    listed = dict(re.findall(r"^\* \[[\w-]+\]\((src/gb300serve/guides/[\w-]+\.md)\): (.*)$", text, re.MULTILINE))
    assert {ROOT / name: summary for name, summary in listed.items()} == {
        path: path.read_text(encoding="utf-8").splitlines()[2] for path in GUIDES
    }


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_to_files(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists()


def test_architecture_lists_every_package() -> None:
    text = (ROOT / "src/gb300serve/guides/architecture.md").read_text(encoding="utf-8")
    rows = text.split("| package | content |", 1)[1].split("\n\n", 1)[0]
    named = set(re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE))
    packages = {path.parent.name for path in (ROOT / "src/gb300serve").glob("*/*.*")} - {"__pycache__"}
    assert packages == named
