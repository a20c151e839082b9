from gb300serve.host.facts import GpuHolder, ListeningSocket
from gb300serve.host.missing import Missing
from gb300serve.host.nvidia import ComputeProcess
from gb300serve.preflight.subject import Own
from tests.support.hosts import DISPLAY, GB300, GIB, IMAGE, host, launched, station

OURS = GpuHolder(ComputeProcess(1, "vllm", 200 * GIB, "GPU-300"), "ours", "dsv41-vllm")
THEIRS = GpuHolder(ComputeProcess(2, "python3", 3 * GIB, "GPU-300"), "theirs", "someone")
DESKTOP = GpuHolder(ComputeProcess(3, "gnome-shell", GIB, "GPU-4000"))
NOWHERE = GpuHolder(ComputeProcess(4, "python3", GIB))
FULL = host(gpus=(DISPLAY, GB300), processes=(OURS, THEIRS, DESKTOP, NOWHERE))
OWN = Own(frozenset({"ours"}), frozenset({30006}))


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
    assert launched(own=Own(kept=True)).image is None
    assert launched(image=Missing("x")).image is None
    assert station().image is None


def test_ports_that_others_hold() -> None:
    heard = ListeningSocket(30006, "0.0.0.0")
    assert launched(ports=(heard,)).strangers_ports == (heard,)
    assert launched(ports=(heard,), own=OWN).strangers_ports == ()
    assert launched(ports=Missing("x")).strangers_ports == ()
    assert station().strangers_ports == ()
