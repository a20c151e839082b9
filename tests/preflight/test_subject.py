from pathlib import Path

from gb300serve.core.values import Missing
from gb300serve.host.facts import GpuHolder, ListeningSocket
from gb300serve.host.model_files import HostRequirements, Model
from gb300serve.host.nvidia import ComputeProcess
from gb300serve.plan.compile import Compiler
from gb300serve.preflight.subject import OwnResources, host_requirements, is_meant, principal, selected, words
from gb300serve.recipe.site import Site
from tests.support.hosts import DISPLAY, GB300, GIB, IMAGE, host, launched, station
from tests.support.recipes import ENGINE, alone, load, write

OURS = GpuHolder(ComputeProcess(1, "vllm", 200 * GIB, "GPU-300"), "ours", "dsv41-vllm")
THEIRS = GpuHolder(ComputeProcess(2, "python3", 3 * GIB, "GPU-300"), "theirs", "someone")
DESKTOP = GpuHolder(ComputeProcess(3, "gnome-shell", GIB, "GPU-4000"))
NOWHERE = GpuHolder(ComputeProcess(4, "python3", GIB))
FULL = host(gpus=(DISPLAY, GB300), processes=(OURS, THEIRS, DESKTOP, NOWHERE))
OWN = OwnResources(frozenset({"ours"}), frozenset({30006}))


def test_the_gpus_of_a_launch() -> None:
    assert (launched(FULL).gpus, launched(FULL).computing) == ((DISPLAY, GB300), (GB300,))
    chosen = launched(FULL, container={"gpus": "device=GPU-4000"})
    assert (chosen.gpus, chosen.computing) == ((DISPLAY,), (DISPLAY,))
    none = launched(FULL, container={"gpus": None})
    assert (none.wants_gpu, none.gpus, none.computing) == (False, (), ())
    assert (station().wants_gpu, station(gpus=Missing("x")).gpus) == (True, ())


def test_processes_that_are_not_the_launchs_own() -> None:
    assert launched(FULL).foreign == (OURS, THEIRS, NOWHERE)
    assert launched(FULL, own=OWN).foreign == (THEIRS, NOWHERE)
    assert launched(host(gpus=Missing("x"), processes=(THEIRS, DESKTOP))).foreign == (THEIRS, DESKTOP)
    assert launched(host(processes=Missing("x"))).foreign == ()


def test_what_the_launch_frees_itself() -> None:
    assert launched(FULL, own=OWN).leaving(GB300) == 200 * GIB
    assert launched(FULL).leaving(GB300) == 0
    silent = GpuHolder(ComputeProcess(1, None, None, "GPU-300"), "ours")
    assert launched(host(processes=(silent,)), own=OWN).leaving(GB300) is None


def test_a_kept_container_has_its_image() -> None:
    assert launched().image == IMAGE
    assert launched(own=OwnResources(kept=True)).image is None
    assert launched(image=Missing("x")).image is None
    assert station().image is None


def test_ports_that_others_hold() -> None:
    heard = ListeningSocket(30006, "0.0.0.0")
    assert launched(ports=(heard,)).foreign_ports == (heard,)
    assert launched(ports=(heard,), own=OWN).foreign_ports == ()
    assert launched(ports=Missing("x")).foreign_ports == ()
    assert station().foreign_ports == ()


BOTH = (DISPLAY, GB300)


def test_what_a_launch_gets() -> None:
    assert selected(BOTH, None) == ()
    assert selected(BOTH, "all") == BOTH
    assert selected(BOTH, "1") == BOTH
    assert selected(BOTH, "device=GPU-300") == (GB300,)
    assert selected(BOTH, "device=1,0") == (GB300, DISPLAY)
    assert selected(BOTH, "device=GPU-9") == ()


def test_words_and_devices() -> None:
    assert (words("all"), words("2"), words("device=a,b")) == ((), (), ("a", "b"))
    assert is_meant(GB300, "GPU-3")
    assert not is_meant(GB300, "0")


def test_the_large_one() -> None:
    assert principal(BOTH) == (GB300,)
    assert principal(()) == ()


SHA = "0123456789abcdef" * 4


def of(directory: Path, rest: str) -> HostRequirements:
    loaded = load(write(directory, {"v1": alone(rest + ENGINE)}), "bench/v1")
    assert loaded.recipe is not None
    site = Site(models="/models", cache="/cache", patches="/patches")
    return host_requirements(Compiler(site).plan(loaded.recipe), loaded.recipe, (30006,))


def test_the_words_of_the_plan(tmp_path: Path) -> None:
    text = f"""\
model: {{repo: a/b, revision: rev, path: "${{models}}/b", mount: /model}}
models: [{{repo: a/d, path: /models/d, mount: /draft}}]
container:
  mounts:
    - {{source: "${{cache}}", target: /root/.cache/vllm}}
    - {{source: "${{patches}}/x.py", target: /x.py, sha256: {SHA}}}
    - {{source: "${{patches}}", target: /w, sha256: {{y.py: {SHA}, x.py: {SHA}}}}}
boot: {{tuning_cache: {{identity: 9ac7b387, configs: 210}}}}
"""
    assert of(tmp_path, text) == HostRequirements(
        "vllm/vllm-openai:v0.33.0",
        models=(Model("/models/b", "a/b", "rev"), Model("/models/d", "a/d")),
        caches=("/cache",),
        sources=("/models/b", "/models/d", "/cache", "/patches/x.py", "/patches"),
        patches=(("/patches/x.py", SHA), ("/patches/y.py", SHA)),
        ports=(30006,),
        tuning=("/cache", "9ac7b387"),
    )


def test_a_model_that_is_not_mounted_and_a_cache_that_is_not_said(tmp_path: Path) -> None:
    text = "model: {path: /models/b}\nboot: {tuning_cache: {identity: 9ac7b387, configs: 210}}\n"
    assert of(tmp_path, text) == HostRequirements(
        "vllm/vllm-openai:v0.33.0", models=(Model("/models/b"),), ports=(30006,)
    )


def test_a_recipe_without_a_model(tmp_path: Path) -> None:
    assert of(tmp_path, "") == HostRequirements("vllm/vllm-openai:v0.33.0", ports=(30006,))
