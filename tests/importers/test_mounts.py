from typing import Any

import pytest

from tests.support.imports import IMAGE, container, read


@pytest.mark.parametrize(
    ("option", "mount"),
    [
        ("-v /a:/b", {"source": "/a", "target": "/b"}),
        ("-v/a:/b:ro", {"source": "/a", "target": "/b", "read_only": True}),
        ("--volume=/a:/b:rw,z", {"source": "/a", "target": "/b"}),
        ("--mount type=bind,source=/a,target=/b,readonly", {"source": "/a", "target": "/b", "read_only": True}),
        ("--mount type=bind,src=/a,dst=/b,ro=true", {"source": "/a", "target": "/b", "read_only": True}),
        ("--mount source=/a,destination=/b,type=bind,readonly=false", {"source": "/a", "target": "/b"}),
        ("-v ../x:/b", {"source": "/home/me/x", "target": "/b"}),
        ("-v cache:/b", {"source": "cache", "target": "/b"}),
        ("-v '/a${b}:/b'", {"source": "/a$${b}", "target": "/b"}),
    ],
)
def test_a_mount(option: str, mount: dict[str, Any]) -> None:
    assert container(option) == {"mounts": [mount]}


def test_a_dollar_in_a_path_is_no_variable_of_a_recipe() -> None:
    assert read(f"docker run -v '/a${{b}}:/b' {IMAGE} /m\n").plan.container.mounts[0].source == "/a${b}"


@pytest.mark.parametrize(
    ("option", "finding"),
    [
        ("-v /a", "-v /a has one path only: docker makes an anonymous volume there, and mounts no directory"),
        ("-v cache:/b", "cache is a named volume, not a path of the host"),
        ("-v /a:/b:nocopy", "-v /a:/b:nocopy: a recipe has no word for the mode nocopy"),
        ("-v /a:/b:ro,Z,cached", "-v /a:/b:ro,Z,cached: a recipe has no word for the mode Z,cached"),
        (r"-v 'C:\models:/m'", r"-v C:\models:/m names a directory of Windows: the Station has none"),
        ("-v C:models:/m", "-v C:models:/m names a directory of Windows: the Station has none"),
        ("-v %USERPROFILE%/x:/m:ro", "-v %USERPROFILE%/x:/m:ro names a directory of Windows: the Station has none"),
        ("-v /path/to/x:/b", "/path/to/x is a placeholder: the author's own path was not published"),
        ("-v './<model>':/b", "/home/me/work/<model> is a placeholder: the author's own path was not published"),
        ("--mount type=bind,target=/b", "--mount type=bind,target=/b mounts nothing of the host"),
        (
            "--mount type=bind,src=/a,dst=/b,consistency=cached",
            "--mount: a recipe has no word for consistency",
        ),
    ],
)
def test_what_is_said_of_mounts(option: str, finding: str) -> None:
    assert finding in [d.message for d in read(f"docker run {option} {IMAGE} /m\n").diagnostics]


def test_the_models_mount_becomes_the_model() -> None:
    document = read(f"docker run -v /srv/x:/model:ro -v /c:/d {IMAGE} --model /model\n").document
    assert document["model"] == {"path": "/srv/x", "mount": "/model"}
    assert document["container"] == {"mounts": [{"source": "/c", "target": "/d"}]}


def test_a_models_mount_that_is_not_first_or_can_be_written_stays_where_it_is() -> None:
    for options in ("-v /c:/d -v /srv/x:/model:ro", "-v /srv/x:/model"):
        document = read(f"docker run {options} {IMAGE} --model /model\n").document
        assert "model" not in document
        assert document["container"]["mounts"][-1]["source"] == "/srv/x"
