from dataclasses import replace

from gb300serve.journal.history import RunHistory
from gb300serve.journal.journal import JournalEntry, RunningLane
from gb300serve.journal.runs import RunRecord
from gb300serve.lifecycle.backend import Container, Image, wanted_options
from gb300serve.lifecycle.drift import drift, from_journal, looks_like, masked
from gb300serve.lifecycle.launch import Launch
from gb300serve.plan.model import Mount
from tests.support.entries import V13, entry, record
from tests.support.fake_clock import START
from tests.support.launches import COMMAND, FOUND, STRANGER, contained, container, launch, plan

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
        "image: the recipe has vllm/vllm-openai:deepseekv41-flash-0909@sha256:00d5, "
        "the container was created from vllm/vllm-openai:nightly",
        "command: the recipe has 30006, the container has 30007",
        "gpus: the recipe has all, the container has none",
        "env PIN_MODE: the container and the recipe have different values",
        "the recipe or the site has changed since this container was created",
    )


def test_a_tag_that_moved_is_drift() -> None:
    moved = Image("sha256:ffff", (), "arm64")
    assert said(container(V14), V14, moved) == (
        "image: vllm/vllm-openai:deepseekv41-flash-0909@sha256:00d5 now means sha256:ffff, "
        "the container was created from sha256:aaaa",
    )


def test_a_container_from_the_printed_command_is_recognised() -> None:
    by_hand = container(V14, labels={}, name="anything")
    assert looks_like(by_hand, V14)
    assert looks_like(replace(by_hand, image="vllm/vllm-openai:deepseekv41-flash-0909"), V14)
    assert looks_like(replace(by_hand, image="mirror/vllm@sha256:00d5"), V14)
    assert not looks_like(replace(by_hand, image="vllm/vllm-openai:deepseekv41-flash-0909@sha256:77"), V14)
    assert not looks_like(by_hand, launch("v13"))


def test_drift_by_field() -> None:
    other = container(V14, gpus=None, restart_policy="always")
    assert [(each.field, each.against, each.wanted, each.found) for each in drift(other, V14, FOUND)] == [
        ("gpus", "recipe", "all", "none"),
        ("restart", "recipe", "no", "always"),
    ]
    assert drift(container(V14, command=COMMAND[:-2]), V14, FOUND)[0].as_json() == {
        "field": "command",
        "against": "recipe",
        "wanted": "--port 30006",
        "found": "nothing",
        "message": "command: the recipe has --port 30006, the container has nothing",
    }


def test_options_of_the_container_are_compared_by_field() -> None:
    wanted = replace(V14, plan=contained(plan(), ulimits={"memlock": -1}, mounts=(Mount("/models/x", "/model"),)))
    asked = wanted_options(wanted.plan.container)
    assert drift(container(wanted, options=asked), wanted, FOUND) == ()
    other = container(wanted, options={**asked, "ulimits.memlock": "65536", "mounts./model": "/models/y"})
    assert [(each.field, each.wanted, each.found) for each in drift(other, wanted, FOUND)] == [
        ("mounts./model", "/models/x", "/models/y"),
        ("ulimits.memlock", "-1", "65536"),
    ]


def test_a_policy_that_is_not_applied_yet_is_no_drift() -> None:
    wanted = replace(V14, plan=contained(plan(), restart="unless-stopped"))
    assert said(container(wanted), wanted, FOUND) == ()


def test_the_pinned_command_is_held_against_the_container_too() -> None:
    pinned = replace(V14, pinned=(*COMMAND[:-1], "30007"))
    assert [(each.field, each.against, each.wanted, each.found) for each in drift(container(V14), pinned, FOUND)] == [
        ("command", "pinned command", "30007", "30006")
    ]
    assert drift(container(V14), replace(V14, pinned=COMMAND), FOUND) == ()


def from_the_journal(of: Container, *entries: JournalEntry, runs: tuple[RunRecord, ...] = ()) -> list[str]:
    return [each.message for each in from_journal(of, "docker", RunHistory(entries, runs))]


def test_what_the_journal_says_serves() -> None:
    live, ended = container(V14), container(V14, state="exited", finished_at=START)
    v14 = RunningLane("deepseek-v4.1-flash/v14", "dsv41-vllm", live.id, V14.digest)
    serves, stopped = entry(after=(v14,)), entry(verb="down", before=(v14,), after=())
    assert from_the_journal(live, serves) == []
    assert from_the_journal(ended, serves, stopped) == []
    assert from_the_journal(live) == [], "nothing was written down yet"
    assert from_the_journal(live, serves, stopped) == [
        "it runs, but the journal records nothing since 2026-11-29 19:50:03Z: it was not started by gb300serve"
    ]
    assert from_the_journal(live, entry(after=(V13,))) == [
        "it runs, but the journal records deepseek-v4.1-flash/v13 since 2026-11-29 19:50:03Z: "
        "it was not started by gb300serve"
    ]
    assert from_the_journal(ended, serves) == [
        "the journal records that it has served since 2026-11-29 19:50:03Z; gb300serve did not stop it"
    ]
    assert from_the_journal(STRANGER, serves) == []


def test_what_was_only_started_is_not_said_to_serve() -> None:
    ended = container(V14, state="exited", finished_at=START)
    v14 = RunningLane("deepseek-v4.1-flash/v14", "dsv41-vllm", ended.id, V14.digest)
    for result in ("started", "interrupted"):
        assert from_the_journal(ended, entry(result=result, after=(v14,))) == [
            "the journal records that it was started at 2026-11-29 19:50:03Z and not watched until READY; "
            "gb300serve did not stop it"
        ]
    watched = entry(at=START + 60.0, before=(v14,), after=(v14,), run="r2")
    assert from_the_journal(ended, entry(result="started", after=(v14,)), watched) == [
        "the journal records that it has served since 2026-11-29 19:50:03Z; gb300serve did not stop it"
    ]


def test_a_launch_that_is_under_way_is_no_drift() -> None:
    booting = record(at=5.0, state="booting", ready_seconds=None)
    assert from_the_journal(container(V14), entry(after=(V13,)), runs=(booting,)) == []
