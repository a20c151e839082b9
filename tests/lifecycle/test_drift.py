from dataclasses import replace

from gb300serve.lifecycle.drift import drift, looks_like, masked
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.ports import Container, Image
from tests.support.launches import COMMAND, FOUND, contained, container, launch, plan

V14 = launch()


def said(of: Container, wanted: Launch, image: Image | None) -> tuple[str, ...]:
    return tuple(each.message for each in drift(of, wanted, image))


KEYED = replace(V14, plan=replace(plan(), command=(*COMMAND, "--api-key", "${secret:KEY}")))
WITH_KEY = container(KEYED, command=(*COMMAND, "--api-key", "sesame"))


def test_the_container_of_a_plan_has_not_drifted() -> None:
    assert drift(container(V14), V14, FOUND) == ()
    assert drift(container(V14), V14, None) == ()


def test_secrets_are_neither_compared_nor_shown() -> None:
    assert masked(WITH_KEY, KEYED) == KEYED.plan.command
    assert drift(WITH_KEY, KEYED, FOUND) == ()
    assert "sesame" not in "".join(said(WITH_KEY, V14, FOUND))
    glued = replace(V14, plan=replace(plan(), command=(*COMMAND, "--api-key=${secret:KEY}")))
    opened = container(glued, command=(*COMMAND, "--api-key=sesame"))
    assert drift(opened, glued, FOUND) == ()
    assert "sesame" not in "".join(said(opened, V14, FOUND))


def test_every_difference_is_a_sentence() -> None:
    other = container(
        V14,
        image="vllm/vllm-openai:nightly",
        gpus=None,
        command=(*COMMAND[:-1], "30007"),
        env={"PIN_MODE": "off"},
    )
    wanted = replace(V14, plan=contained(plan(), env={"PIN_MODE": "split"}))
    assert said(other, wanted, FOUND) == (
        "image: the recipe says vllm/vllm-openai:deepseekv41-flash-0909@sha256:00d5, "
        "the container was made from vllm/vllm-openai:nightly",
        "command: the recipe says 30006, the container has 30007",
        "gpus: the recipe says all, the container has none",
        "env PIN_MODE: the container has another value than the recipe",
        "the recipe or the site has changed since this container was created",
    )


def test_a_tag_that_moved_is_drift() -> None:
    moved = Image("sha256:ffff", (), "arm64")
    assert said(container(V14), V14, moved) == (
        "image: vllm/vllm-openai:deepseekv41-flash-0909@sha256:00d5 now means sha256:ffff, "
        "the container was made from sha256:aaaa",
    )


def test_a_container_from_the_printed_command_is_recognised() -> None:
    by_hand = container(V14, labels={}, name="anything")
    assert looks_like(by_hand, V14)
    assert looks_like(replace(by_hand, image="vllm/vllm-openai:deepseekv41-flash-0909"), V14)
    assert looks_like(replace(by_hand, image="mirror/vllm@sha256:00d5"), V14)
    assert not looks_like(replace(by_hand, image="vllm/vllm-openai:deepseekv41-flash-0909@sha256:77"), V14)
    assert not looks_like(by_hand, launch("v13"))
