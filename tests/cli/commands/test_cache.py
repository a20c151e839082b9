from pathlib import Path

import pytest

from gb300serve.autotune.sets import set_path
from tests.support.fake_cache import FLASHINFER, content
from tests.support.invoke import Answer, run

LANE = "deepseek-v4.1-flash"
NAME = "9ac7b387" + "0" * 56
OTHER = "cbf5ea8f" + "0" * 56


class Machine:
    """A home with a site whose cache directory is in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.cache = home / "vllm-cache"
        (home / "site.yaml").write_text(f"format: gb300serve.site/1\ncache: {self.cache}\nmodels: /models\n")

    def run(self, *words: str | Path) -> Answer:
        return run("cache", *words, "--site", self.home / "site.yaml", variables={"HOME": str(self.home)})

    def put(self, identity: str, data: bytes, version: str | None = None) -> Path:
        path = self.cache / set_path(FLASHINFER, "103a", identity, version)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def state(self, *words: str) -> str:
        found: str = self.run("verify", "v14", "--json", *words).document["state"]
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_an_empty_cache_is_said(machine: Machine) -> None:
    assert machine.run().out == f"no tuning set below {machine.cache}\n"
    answer = machine.run("verify", "v14")
    assert answer.code == 6
    assert answer.out.splitlines()[:2] == [
        f"{LANE}/v14: the next boot will tune kernels",
        "  set 9ac7b387 is missing: the boot will tune, 74 to 80 minutes",
    ]


def test_sets_are_listed_with_who_expects_them(machine: Machine) -> None:
    machine.put(NAME, content(210))
    machine.put(OTHER, content(189, "0.6.17"))
    head, mine, other, remark = machine.run("list").out.splitlines()
    assert head.split() == ["IDENTITY", "CONFIGS", "SHA256", "FLASHINFER", "ARCH", "LAST", "USE", "(UTC)",
                            "EXPECTED", "BY"]  # fmt: skip
    assert mine.split()[:2] == ["9ac7b387", "210"]
    assert mine.endswith(f"{LANE}/v12, v13, v14, v15")
    assert other.split()[:2] == ["cbf5ea8f", "189"]
    assert other.endswith("-")
    assert "_metadata names FlashInfer 0.6.17" in remark


def test_json_has_sets_and_what_a_release_expects(machine: Machine) -> None:
    machine.put(NAME, content(210))
    document = machine.run("list", "v14", "--json").document
    assert list(document) == [
        "schema", "directory", "sets", "release", "state", "remarks", "expected", "prediction", "found", "pin", "note",
    ]  # fmt: skip
    assert (document["schema"], document["state"]) == ("gb300serve.cache/1", "ready")
    assert document["expected"] == {
        "identity": "9ac7b387", "configs": 210, "basis": "measured 2026-09-12",
        "tuning_seconds": 4800.0, "tuning_seconds_range": [4440, 4800.0], "sha256": None,
    }  # fmt: skip
    assert machine.run("verify", "v14", "--json").document["found"] == document["found"]


def test_what_a_change_does_to_the_identity(machine: Machine) -> None:
    machine.put(NAME, content(210))
    same = machine.run("show", "v14", "--set", "engine.options.gpu_memory_utilization=0.95", "--json").document
    assert (same["state"], same["prediction"]["verdict"]) == ("ready", "same")
    new = machine.run("show", "v14", "--set", "engine.options.max_num_seqs=24")
    assert new.code == 0
    assert new.out.splitlines()[0] == f"{LANE}/v14+set: it is unknown what the next boot will do"
    assert "prediction new: max_num_seqs is part of the identity" in new.out
    assert "a miss     74 to 80 minutes of tuning" in new.out


def test_a_pin_is_kept_put_back_and_renewed(machine: Machine) -> None:
    path = machine.put(NAME, content(210))
    assert machine.run("pin", "v14").err.startswith(f"pinned for {LANE}/v14: 210 configurations, sha256 ")
    path.write_bytes(content(231))  # as a boot with a patch does
    assert machine.state() == "differs"
    restored = machine.run("pin", "v14")
    assert "the previous file is kept as autotune_configs.json.aside-" in restored.err
    assert path.read_bytes() == content(210)
    assert machine.state() == "ready"
    (aside,) = path.parent.glob("*.aside-*")
    assert aside.read_bytes() == content(231)
    assert "already contains these 210 configurations" in machine.run("pin", "v14").err
    path.write_bytes(content(231))
    assert "231 configurations" in machine.run("pin", "v14", "--renew").err
    assert machine.state() == "ready"


def test_there_is_nothing_to_pin(machine: Machine) -> None:
    answer = machine.run("pin", "v14")
    assert (answer.code, answer.err.splitlines()[0]) == (
        6,
        f"gb300serve: nothing to pin for {LANE}/v14: set 9ac7b387 is missing: the boot will tune, 74 to 80 minutes",
    )


def test_a_set_is_seeded_from_a_file_before_the_first_boot(machine: Machine) -> None:
    source = machine.home / "known-good.json"
    source.write_bytes(content(210))
    refused = machine.run("seed", "v14", "--from", source)
    assert refused.code == 6
    assert "the full identity of the tuning set of deepseek-v4.1-flash/v14 is unknown" in refused.err
    assert "--identity NAME" in refused.err
    seeded = machine.run("seed", "v14", "--from", source, "--identity", NAME)
    assert seeded.code == 0
    assert (machine.cache / set_path("0.6.18", "103a", NAME, None)).read_bytes() == content(210)
    assert machine.state() == "ready"
    verify = f"gb300serve cache verify v14 --site {machine.home / 'site.yaml'}"
    assert seeded.err.splitlines()[-1] == f"every boot writes the file again; afterwards, check it with {verify}"


def test_a_set_of_another_identity_is_seeded_with_a_warning(machine: Machine) -> None:
    machine.put(OTHER, content(189, cublas="13.1"))
    path = machine.put(NAME, content(210, cublas="13.0"))
    answer = machine.run("seed", "v14", "--from", "cbf5ea8f")
    assert answer.code == 0
    assert answer.err.splitlines()[:3] == [
        "its environment differs from the set it replaces: cublas: 13.1 and 13.0",
        "it was tuned under another identity: kernels of missing shapes will still be tuned",
        "it has 189 configurations, the recipe expects 210",
    ]
    assert path.read_bytes() == content(189, cublas="13.1")


def test_a_set_of_another_library_will_be_ignored(machine: Machine) -> None:
    machine.put(NAME, content(210))
    source = machine.home / "old.json"
    source.write_bytes(content(210, "0.6.17"))
    answer = machine.run("seed", "v14", "--from", source)
    assert "it was measured with FlashInfer 0.6.17; FlashInfer 0.6.18 will ignore it" in answer.err
    assert machine.state() == "differs"


def test_a_set_under_the_old_name_is_seeded_under_the_new_one(machine: Machine) -> None:
    machine.put(NAME, content(210))
    recipe = machine.home / "v99.yaml"
    shown = run("show", "v14").out.replace("version: 0.1.dev20904+g179dd0fa9", "version: 0.32.0")
    recipe.write_text(shown)
    assert "seed it under that name" in machine.run("verify", recipe).out
    assert machine.run("seed", recipe).code == 0
    ranked = machine.cache / set_path("0.6.18", "103a", NAME, "0.32.0")
    assert (ranked.name, ranked.read_bytes()) == ("autotune_configs_dp0_rank0.json", content(210))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ((), "nothing is pinned for deepseek-v4.1-flash/v14"),
        (("--from", "ffffffff"), "ffffffff is neither a file nor a tuning set of this cache"),
    ],
)
def test_there_is_nothing_to_seed_from(machine: Machine, source: tuple[str, ...], message: str) -> None:
    machine.put(NAME, content(210))
    answer = machine.run("seed", "v14", *source)
    assert (answer.code, answer.err.splitlines()[0]) == (6, f"gb300serve: {message}")


def test_what_is_no_set_is_not_seeded(machine: Machine) -> None:
    path = machine.put(NAME, content(210))
    (machine.home / "x.json").write_text("[]")
    answer = machine.run("seed", "v14", "--from", machine.home / "x.json")
    assert (answer.code, "is not a valid tuning set: not an object" in answer.err) == (6, True)
    assert path.read_bytes() == content(210)


def test_a_version_that_keeps_its_sets_elsewhere_says_so(machine: Machine) -> None:
    recipe = machine.home / "v99.yaml"
    recipe.write_text(run("show", "v14").out.replace("version: 0.1.dev20904+g179dd0fa9", "version: 0.33.0"))
    answer = machine.run("verify", recipe)
    assert (answer.code, "/root/.cache/flashinfer/autotune/v2" in answer.out) == (0, True)


def test_a_recipe_that_mounts_no_cache(machine: Machine) -> None:
    answer = machine.run("show", "v14", "--set", "container.mounts=[]")
    assert (answer.code, "mounts nothing at /root/.cache/vllm" in answer.err) == (4, True)


@pytest.mark.parametrize("action", ["show", "seed", "pin", "verify"])
def test_an_action_needs_a_release(machine: Machine, action: str) -> None:
    answer = machine.run(action)
    assert (answer.code, answer.err.splitlines()[0]) == (2, f"gb300serve: cache {action} needs a release")


def test_files_on_another_machine_are_not_looked_for_here(machine: Machine) -> None:
    variables = {"HOME": str(machine.home), "DOCKER_HOST": "ssh://box"}
    answer = run("cache", "list", variables=variables)
    assert (answer.code, answer.err.splitlines()[0]) == (
        6,
        "gb300serve: the tuning cache is on the machine of ssh://box",
    )


def test_the_simulated_station_has_the_sets_of_the_releases_on_record(machine: Machine) -> None:
    assert machine.run("verify", "v14", "--on", "sim").code == 0
    listed = machine.run("list", "--on", "sim").out
    identities = {line.split()[0] for line in listed.splitlines()[1:]}
    assert {"08c89d94", "9ac7b387", "cbf5ea8f", "62426808"} <= identities
