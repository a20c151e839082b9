from pathlib import Path

import pytest

from gb300serve.core.errors import Gb300Error
from gb300serve.recipe.site import DockerSection, LaneSection, Site, SiteInvalidError, SiteUnreadableError, load_site

REFERENCE = """\
format: gb300serve.site/1
models: /models
cache: /cache
docker: {host: "unix:///a.sock"}
gpus: {GB300: GPU-1}
lanes: {a: {cache: /a}}
"""


def file(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_bytes(text.encode())
    return path


def test_no_site_at_all() -> None:
    assert load_site(None, None) == Site()
    assert Site().address is None


def test_a_missing_key_comes_from_the_reference_site(tmp_path: Path) -> None:
    reference = file(tmp_path, "reference.yaml", REFERENCE)
    own = file(tmp_path, "own.yaml", "format: gb300serve.site/1\ncache: /mine\ndefault_lane: b\ndocker: {context: c}\n")
    assert load_site(own, reference) == Site(
        models="/models",
        cache="/mine",
        docker=DockerSection(context="c"),
        gpus={"GB300": "GPU-1"},
        default_lane="b",
        lanes={"a": LaneSection(cache="/a")},
    )
    assert load_site(None, reference).cache == "/cache"
    assert load_site(own, None).models is None


@pytest.mark.parametrize("text", ["cache: /mine\n", "format: gb300serve.site/1\ncache: /mine\nmodels: null\n"])
def test_what_a_site_may_leave_out_and_remove(tmp_path: Path, text: str) -> None:
    site = load_site(file(tmp_path, "own.yaml", text), file(tmp_path, "reference.yaml", REFERENCE))
    assert (site.cache, site.models) == ("/mine", None if "null" in text else "/models")
    assert load_site(file(tmp_path, "own.yaml", text), None).cache == "/mine"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("format: gb300serve.site/1\ncahce: /a\nmodels: 5\nx: yes\n", ["FMT001", "FMT002", "FMT001", "YAML005"]),
        ("format: gb300serve/1\n", ["FMT005"]),
        ("format: gb300serve.site/2\n", ["FMT006"]),
        ("- a\n", ["FMT002"]),
        ("", ["YAML004"]),
        ("cache: [\n", ["YAML001"]),
        ("cache: ''\n", ["FMT004"]),
        ("gpus: {GB300: 0}\n", ["FMT002"]),
        ("lanes: {a: {cahce: /x}}\n", ["FMT001"]),
        ("docker: {host: a, context: b}\n", ["FMT004"]),
        ("state: var/serve\n", ["FMT004"]),
        ("models: models\ncache: ~/c\npatches: ./p\n", ["FMT004"] * 3),
        ("lanes: {a: {cache: ~/x}}\nstations: {a: {models: m}}\n", ["FMT004"] * 2),
        ("address: http://gb300:8000\n", ["FMT004"]),
        ("stations: {a: {cahce: /x}}\n", ["FMT001"]),
        ("stations: {../a: {}}\n", ["FMT004"]),
        ("stations: {a: {docker: {host: a, context: b}}}\n", ["FMT004"]),
    ],
)
def test_what_is_not_a_site(tmp_path: Path, text: str, codes: list[str]) -> None:
    path = file(tmp_path, "own.yaml", text)
    with pytest.raises(SiteInvalidError) as error:
        load_site(path, file(tmp_path, "reference.yaml", REFERENCE))
    assert (error.value.exit_code, error.value.message) == (3, f"{path} is not a valid site file")
    assert [d.code for d in error.value.diagnostics] == codes
    assert {d.file for d in error.value.diagnostics} == {str(path)}


def test_a_fault_of_the_reference_site_stands_there(tmp_path: Path) -> None:
    reference = file(tmp_path, "reference.yaml", REFERENCE + "addres: 0.0.0.0\n")
    with pytest.raises(SiteInvalidError) as error:
        load_site(file(tmp_path, "own.yaml", "cache: /mine\n"), reference)
    assert [(d.code, d.file, d.line, d.hint) for d in error.value.diagnostics] == [
        ("FMT001", str(reference), 7, "write `address`")
    ]


def test_a_site_that_cannot_be_read(tmp_path: Path) -> None:
    absent = tmp_path / "absent.yaml"
    for path, code, reason in ((absent, 2, "No such file or directory"), (tmp_path, 3, "Is a directory")):
        with pytest.raises(Gb300Error) as error:
            load_site(path, None)
        assert (error.value.exit_code, error.value.message) == (code, f"site {path}: {reason}")
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"cache: /\xe4\n")
    with pytest.raises(SiteUnreadableError, match="not UTF-8"):
        load_site(path, None)


def test_variables_of_a_lane() -> None:
    site = Site.model_validate({"models": "/m", "cache": "/c", "lanes": {"a": {"cache": "/a"}, "b": {}}})
    assert site.variables("a") == {"models": "/m", "cache": "/a"}
    assert site.variables("b") == {"models": "/m", "cache": "/c"}
    assert site.variables("absent") == {"models": "/m", "cache": "/c"}
    assert Site().variables("a") == {}


def test_a_station_is_laid_over_the_top_level() -> None:
    site = Site.model_validate(
        {
            "models": "/m",
            "cache": "/c",
            "address": "10.0.0.1",
            "docker": {"context": "c"},
            "gpus": {"GB300": "GPU-1", "RTX": "GPU-2"},
            "stations": {
                "a": {"docker": {"host": "ssh://a"}, "cache": "/a", "gpus": {"GB300": "GPU-3"}},
                "b": {"address": "10.0.0.2"},
            },
        }
    )
    a, b = site.at("a"), site.at("b")
    assert (a.models, a.cache, a.docker.host, a.docker.context) == ("/m", "/a", "ssh://a", None)
    assert (a.address, a.gpus) == (None, {"GB300": "GPU-3"})  # the address was another machine's
    assert (b.address, b.docker.context, b.gpus) == ("10.0.0.2", "c", site.gpus)
