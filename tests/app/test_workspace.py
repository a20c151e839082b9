import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from gb300serve.app.environment import read_environment
from gb300serve.app.workspace import Workspace, learned_boots, shipped_recipes, state_directory
from gb300serve.cli.console import TerminalConsole
from tests.support.invoke import Answer, run
from tests.support.program import ROOT
from tests.support.recipes import ENGINE, alone, child, container, write

TEXT = alone('container: {mounts: [{source: "${cache}", target: /c}]}\n' + ENGINE)


def site(path: Path, cache: str, more: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"format: gb300serve.site/1\ncache: {cache}\n{more}")
    return path


def test_a_change_that_the_rest_of_the_recipe_does_not_fit(recipes: Path) -> None:
    answer = run("compile", "bench/v1", "--set", "engine.name=sglang", "--recipes", recipes)
    said = f"gb300serve: --set engine.name=sglang: conflicts with the rest of {recipes / 'bench' / 'v1.yaml'}"
    assert (answer.code, answer.err.splitlines()[-1]) == (2, said)
    assert "error OPT001 unknown-option" in answer.err


@pytest.mark.parametrize("command", ["compile", "show", "fit", "lint"])
def test_an_error_in_an_inherited_key_is_at_the_key_that_causes_it(tmp_path: Path, command: str) -> None:
    lane = write(tmp_path, {"v1": TEXT, "v2": child("engine: {name: sglang}\n")}) / "bench"
    answer = run(command, lane / "v2.yaml", "--recipes", tmp_path)
    assert answer.code == 3
    assert f"{lane / 'v2.yaml'}:7:10: error OPT001 unknown-option" in answer.out + answer.err
    assert "    hint: for `engine.options.model`: write 'model_path'\n" in answer.out + answer.err
    assert f"    {lane / 'v1.yaml'}:" in answer.out + answer.err


@pytest.mark.parametrize(
    "words", [("compile",), ("compile", "--json"), ("show",), ("diff", "bench/v1"), ("pin",), ("up", "--on", "sim")]
)
def test_a_literal_secret_is_not_repeated(recipes: Path, words: tuple[str, ...]) -> None:
    text = container("env: {HF_TOKEN: hf_Qw3rTy7uIoPaSdFgHjKl}")
    path = recipes / "bench" / "v3.yaml"
    path.write_text(text.replace("v1", "v3"))
    answer = run(words[0], *words[1:], "bench/v3", "--recipes", recipes)
    said = "container.env.HF_TOKEN holds a literal secret (a Hugging Face token), which would be repeated"
    assert (answer.code, answer.out) == (4, "")
    assert f"gb300serve: {path}:8: {said}" in answer.err
    assert "hf_Qw3" not in answer.err
    everywhere = "lint: {ignore: {SEC003: an example of the documentation}}\n"
    path.write_text(text.replace("v1", "v3") + everywhere)
    assert run("compile", "bench/v3", "--recipes", recipes).code == 4
    at_path = "lint: {ignore: {SEC003: {path: container.env.HF_TOKEN, reason: an example of the documentation}}}\n"
    path.write_text(text.replace("v1", "v3") + at_path)
    assert run("compile", "bench/v3", "--recipes", recipes).code == 0
    assert "SEC003" not in run("lint", path).out
    path.write_text(path.read_text().replace("{HF_TOKEN:", "{MY_TOKEN: hf_AnOtHeRtOkEnOfLeNgTh, HF_TOKEN:"))
    assert run("compile", "bench/v3", "--recipes", recipes).code == 4


def cache(answer: Answer) -> str:
    assert answer.code == 0, answer.err
    (mount,) = answer.document["container"]["mounts"]
    source: str = mount["source"]
    return source


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    site(tmp_path / "recipes" / "site.yaml", "/reference")
    return write(tmp_path / "recipes", {"v1": TEXT})


def test_the_site_that_applies(directory: Path, tmp_path: Path) -> None:
    words = ("compile", "bench/v1", "--json", "--recipes", str(directory))
    variables = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert cache(run(*words, variables=variables)) == "/reference"
    site(tmp_path / "config" / "gb300serve" / "site.yaml", "/users")
    assert cache(run(*words, variables=variables)) == "/users"
    variables["GB300SERVE_SITE"] = str(site(tmp_path / "variable.yaml", "/variables"))
    assert cache(run(*words, variables=variables)) == "/variables"
    option = site(tmp_path / "option.yaml", "/options")
    assert cache(run(*words, "--site", option, variables=variables)) == "/options"


def test_the_reference_site_beside_the_recipe(directory: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other", {"v2": TEXT.replace("v1", "v2")})
    site(other / "site.yaml", "/others")
    words = ("--json", "--recipes", other, "--recipes", directory)
    assert cache(run("compile", "bench/v1", *words)) == "/reference"
    assert cache(run("compile", "bench/v2", *words)) == "/others"
    assert cache(run("compile", directory / "bench" / "v1.yaml", "--json")) == "/reference"


@pytest.mark.parametrize("words", [("--site", "/nonexistent.yaml"), ()])
def test_a_site_that_is_not_there(directory: Path, words: tuple[str, ...]) -> None:
    variables = {} if words else {"GB300SERVE_SITE": "/nonexistent.yaml"}
    answer = run("compile", "bench/v1", "--recipes", directory, *words, variables=variables)
    assert answer.code == 2
    assert answer.err.splitlines()[0] == "gb300serve: site /nonexistent.yaml: No such file or directory"


def test_the_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("option", "second", "variable", "recipes")
    directories = {name: write(tmp_path / name, {"v1": alone(ENGINE + f"limits: [{name}]\n")}) for name in names}
    monkeypatch.chdir(tmp_path)
    variables = {"GB300SERVE_RECIPES": f"{directories['variable']}:/nonexistent"}

    def limits(*words: str) -> str:
        document = run("show", "bench/v1", "--json", *words, variables=variables).document
        (found,) = document["recipe"]["limits"]
        return str(found)

    both = ("--recipes", str(directories["option"]), "--recipes", str(directories["second"]))
    assert limits(*both) == "option"
    assert limits(*both[2:], *both[:2]) == "second"
    assert limits() == "variable"
    assert limits("--recipes", str(directories["recipes"])) == "recipes"
    variables.clear()
    assert limits() == "recipes"
    assert run("show", "deepseek-v4.1-flash/v14").code == 0


def test_an_earlier_directory_that_is_named_twice_stays_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(tmp_path / "recipes", {"v1": alone(ENGINE + "limits: [first]\n")})
    second = write(tmp_path / "second", {"v1": alone(ENGINE + "limits: [second]\n")})
    monkeypatch.chdir(tmp_path)
    answer = run("show", "bench/v1", "--recipes", first, "--recipes", second)
    assert "limits: [first]" in answer.out


def test_a_shadowed_release_is_noted(tmp_path: Path) -> None:
    first = write(tmp_path / "first", {"v1": alone()})
    second = write(tmp_path / "second", {"v1": alone() + "limits: [x]\n"})
    answer = run("compile", "bench/v1", "--recipes", first, "--recipes", second)
    assert answer.code == 0
    assert answer.err.splitlines()[0] == (
        f"{first}/bench/v1.yaml:1:1: note REF001 shadowed-release: "
        f"{second}/bench/v1.yaml also defines bench/v1 and is ignored"
    )
    found = run("diff", "bench/v1", "bench/v1", "--recipes", first, "--recipes", second)
    assert found.err.count("REF001") == 1


def test_a_directory_that_is_not_there() -> None:
    answer = run("list", "--recipes", "/nonexistent")
    assert (answer.code, answer.err) == (2, "gb300serve: --recipes /nonexistent: not a directory\n")


def test_the_default_lane(tmp_path: Path) -> None:
    directory = write(write(tmp_path / "recipes", {"v1": alone()}), {"v1": alone().replace("bench", "desk")}, "desk")
    ambiguous = run("compile", "v1", "--recipes", directory)
    assert (ambiguous.code, ambiguous.err.splitlines()[0]) == (
        2,
        "gb300serve: several lanes have v1: bench/v1, desk/v1",
    )
    own = site(tmp_path / "own.yaml", "/c", "default_lane: desk\n")
    answer = run("compile", "v1", "--recipes", directory, "--site", own, "--json")
    assert answer.document["recipe"] == "desk/v1"


def test_a_recipe_by_its_path(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(directory / "bench")
    for ref in ("./v1.yaml", "v1.yaml", "../bench/v1.yaml", str(directory / "bench" / "v1.yaml")):
        assert run("compile", ref, "--json").document["recipe"] == "bench/v1"
    for command in ("compile", "show", "fit", "lint", "pin", "up", "doctor"):
        absent = run(command, "./v9.yaml")
        assert (absent.code, absent.err) == (2, "gb300serve: v9.yaml: No such file or directory\n")


def test_the_shipped_recipes() -> None:
    assert (shipped_recipes() / "deepseek-v4.1-flash" / "v14.yaml").is_file()


def test_a_directory_of_the_variable_that_is_not_there(directory: Path) -> None:
    variables = {"GB300SERVE_RECIPES": f"/nonexistent:{directory}"}
    answer = run("compile", "bench/v1", "--json", variables=variables)
    assert cache(answer) == "/reference"
    assert answer.err == "GB300SERVE_RECIPES: /nonexistent is not a directory and is ignored\n"


def test_the_station_that_applies(directory: Path, tmp_path: Path) -> None:
    stations = "stations: {east: {cache: /east}, west: {cache: /west}}\n"
    words = ("compile", "v1", "--json", "--recipes", directory, "--site", site(tmp_path / "s.yaml", "/top", stations))
    assert cache(run(*words)) == "/top"
    assert cache(run(*words, variables={"GB300SERVE_STATION": "west"})) == "/west"
    assert cache(run(*words, "--station", "east", variables={"GB300SERVE_STATION": "west"})) == "/east"
    unknown = run(*words, "--station", "eats")
    assert (unknown.code, unknown.err.splitlines()[-1]) == (2, "  hint: did you mean east?")


def test_a_default_lane_that_is_none(directory: Path, tmp_path: Path) -> None:
    answer = run(
        "compile", "v1", "--recipes", directory, "--site", site(tmp_path / "s.yaml", "/c", "default_lane: bnech\n")
    )
    assert (answer.code, answer.err.splitlines()) == (
        3,
        ["gb300serve: default_lane of the site is bnech, but that lane does not exist", "  hint: did you mean bench?"],
    )


def test_nothing_is_set() -> None:
    found = read_environment({"HOME": "/home/a"})
    assert (found.site, found.recipes, found.no_color) == (None, (), False)
    assert (found.config_home, found.state_home) == (Path("/home/a/.config"), Path("/home/a/.local/state"))
    assert (found.docker_host, found.docker_context) == (None, None)


def test_everything_is_set() -> None:
    found = read_environment(
        {
            "HOME": "/home/a", "GB300SERVE_SITE": "/s.yaml", "GB300SERVE_RECIPES": "/a::/b", "XDG_CONFIG_HOME": "/c",
            "XDG_STATE_HOME": "/t", "DOCKER_HOST": "unix:///d", "DOCKER_CONTEXT": "e",
            "NO_COLOR": "1", "KEY": "hunter2",
        }
    )  # fmt: skip
    assert (found.site, found.recipes, found.no_color) == (Path("/s.yaml"), (Path("/a"), Path("/b")), True)
    assert (found.config_home, found.state_home) == (Path("/c"), Path("/t"))
    assert (found.docker_host, found.docker_context) == ("unix:///d", "e")
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize("value", ["", "relative"])
def test_relative_directories_are_ignored(value: str) -> None:
    assert read_environment({"HOME": "/home/a", "XDG_CONFIG_HOME": value}).config_home == Path("/home/a/.config")


def test_an_empty_no_color_means_nothing() -> None:
    assert read_environment({"NO_COLOR": ""}).no_color is False


def test_a_dumb_terminal_gets_no_colour() -> None:
    assert read_environment({"TERM": "dumb"}).no_color is True
    assert read_environment({"TERM": "xterm-256color"}).no_color is False


def test_a_user_who_is_not_there() -> None:
    found = read_environment({"HOME": "/home/a", "GB300SERVE_SITE": "~nobody-of-that-name/site.yaml"})
    assert found.site == Path("~nobody-of-that-name/site.yaml")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("import", "-"), 3, "gb300serve: standard input: Bad file descriptor"),
        (("diagnose", "-"), 2, "gb300serve: -: Bad file descriptor"),
        (("receipts", "learn", "-"), 2, "gb300serve: -: Bad file descriptor"),
    ],
)
def test_a_closed_one_is_said(words: tuple[str, ...], code: int, said: str) -> None:
    command = [sys.executable, "-m", "gb300serve", *words]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command],
        capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert (done.returncode, done.stderr.splitlines()[0]) == (code, said)


def space(site: Path | None, **variables: str) -> Workspace:
    return Workspace(
        read_environment({"HOME": "/home/x", **variables}), TerminalConsole(StringIO(), StringIO()), (), site
    )


def test_the_users_own_unless_the_site_names_one(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("format: gb300serve.site/1\nstate: /var/lib/serve\n")
    assert state_directory(space(None)) == Path("/home/x/.local/state/gb300serve")
    assert state_directory(space(None, XDG_STATE_HOME="/s")) == Path("/s/gb300serve")
    assert learned_boots(space(site)) == Path("/var/lib/serve/boots.json")


def test_a_named_station_has_its_own_and_shares_what_was_learned(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("format: gb300serve.site/1\nstate: /var/lib/serve\nstations: {east: {}}\n")
    east = space(site).at("east")
    assert state_directory(east) == Path("/var/lib/serve/stations/east")
    assert learned_boots(east) == Path("/var/lib/serve/boots.json")
