from collections.abc import Mapping
from typing import Any

from gb300serve.adapters.host import BackendEngine
from gb300serve.core.errors import BackendError
from gb300serve.host.facts import ContainerFact, ImageFact
from gb300serve.host.missing import Missing
from gb300serve.lifecycle.backend import Image
from gb300serve.lifecycle.launch import moment
from tests.support.fake_backend import FakeBackend
from tests.support.launches import IMAGE, STRANGER

TAG = IMAGE.partition("@")[0]
FOUND = Image("sha256:aaaa", ("vllm/vllm-openai@sha256:00d5",), "arm64", ("vllm", "serve"))


def says(found: Mapping[str, Any]) -> Mapping[str, Any]:
    return found


def engine(**images: Image) -> BackendEngine:
    references = {"pinned": IMAGE, "tagged": TAG}
    backend = FakeBackend(images={references[name]: image for name, image in images.items()})
    backend.add(STRANGER)
    return BackendEngine(backend, lambda: says({"ServerVersion": "29"}))


def test_what_it_says() -> None:
    assert engine().info() == {"ServerVersion": "29"}
    assert engine().containers() == {
        "id-stranger": ContainerFact("someone", "lmsysorg/sglang:dev", moment(STRANGER.started_at))
    }


def test_images() -> None:
    there = ImageFact("sha256:aaaa", FOUND.digests, "arm64", ("vllm", "serve"))
    assert engine(pinned=FOUND).image(IMAGE) == there
    assert engine(tagged=FOUND).image(TAG) == there
    assert engine(tagged=FOUND).image(IMAGE) == ImageFact(None, tagged=FOUND.digests)
    assert engine().image(IMAGE) == engine().image(TAG) == ImageFact(None)


def test_an_engine_that_does_not_answer_is_asked_once() -> None:
    asked = []

    def gone() -> Mapping[str, Any]:
        asked.append("info")
        raise BackendError("no Docker Engine answers")

    silent = BackendEngine(FakeBackend(images={IMAGE: FOUND}), gone)
    answers = [silent.info(), silent.image(IMAGE), silent.containers(), silent.info()]
    assert answers == [Missing("no Docker Engine answers")] * 4
    assert asked == ["info"]
