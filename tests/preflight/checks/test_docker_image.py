from dataclasses import replace

import pytest

from gb300serve.core.values import Missing
from gb300serve.host.facts import ImageFact
from gb300serve.preflight.subject import OwnResources, PreflightSubject
from tests.support.hosts import IMAGE, host, launched, said, station
from tests.support.launches import IMAGE as REFERENCE

CODES = ("PRE060", "PRE061", "PRE062", "PRE063")
TAGGED = REFERENCE.partition("@")[0]


def of(subject: PreflightSubject) -> dict[str, list[tuple[str, str, str | None]]]:
    return {code: found for code in CODES if (found := said(subject, code))}


def test_an_image_that_is_absent() -> None:
    absent = launched(image=ImageFact(None))
    message = f"image {REFERENCE} not found on this machine"
    assert of(absent) == {"PRE060": [("error", message, f"docker pull {REFERENCE}")]}
    ((_, _, hint),) = said(launched(image=ImageFact(None), image_id="sha256:1"), "PRE060")
    assert hint == "build it or load it (docker load): it has no registry digest"


@pytest.mark.parametrize(
    "image", [ImageFact(None, tagged=("vllm/vllm-openai@sha256:ffff",)), replace(IMAGE, digests=("x@sha256:ffff",))]
)
def test_a_tag_that_has_moved(image: ImageFact) -> None:
    message = f"{TAGGED} refers to another image here: sha256:ffff; the recipe pins sha256:00d5"
    assert of(launched(image=image)) == {"PRE061": [("error", message, f"docker pull {REFERENCE}")]}


def test_a_tag_of_an_image_that_was_built_here() -> None:
    ((_, message, _),) = said(launched(image=ImageFact(None, tagged=())), "PRE061")
    assert (
        message
        == f"{TAGGED} refers to another image here: no digest: it was built or loaded here; the recipe pins sha256:00d5"
    )


def test_another_id() -> None:
    hint = "build or load the image with the id sha256:1"
    message = f"{TAGGED} has the id sha256:aaaa; the recipe pins sha256:1"
    assert of(launched(image_id="sha256:1")) == {"PRE061": [("error", message, hint)]}
    assert of(launched(image_id="sha256:aaaa")) == {}


def test_another_architecture() -> None:
    message, hint = (
        "the image is for amd64, but this machine is arm64",
        f"docker pull --platform linux/arm64 {REFERENCE}",
    )
    amd = replace(IMAGE, architecture="amd64")
    assert of(launched(image=amd)) == {"PRE062": [("error", message, hint)]}
    assert of(launched(host(docker=Missing("x")), image=amd)) == {}
    assert of(launched(image=replace(IMAGE, architecture=""))) == {}


def test_nothing_to_start() -> None:
    bare = replace(IMAGE, entrypoint=())
    message = "the image has no entrypoint, and the command does not name a program"
    expected = {"PRE063": [("error", message, "engine.launcher: [vllm, serve], or what the image has")]}
    assert of(launched(image=bare)) == expected
    assert of(launched(image=bare, command=())) == expected
    assert of(launched(image=bare, command=("vllm", "serve"))) == {}
    assert of(launched(image=bare, container={"entrypoint": "vllm"})) == {}


def test_where_there_is_nothing_to_judge() -> None:
    assert of(launched(image=ImageFact(None), own=OwnResources(kept=True))) == {}
    assert of(launched(image=Missing("x"))) == of(station()) == of(launched()) == {}
