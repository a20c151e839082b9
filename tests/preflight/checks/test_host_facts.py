from gb300serve.core.values import Missing
from tests.support.hosts import host, launched, said, station

NO_TOOL = Missing("nvidia-smi is not on PATH")
OVER_THERE = Missing("the containers run on ssh://box", asked=False)


def test_a_check_that_was_left_out_is_said_and_refuses_nothing() -> None:
    subject = launched(host(gpus=NO_TOOL, processes=NO_TOOL), ports=Missing("no /proc"))
    assert said(subject, "PRE001") == [
        ("note", "not checked: the GPUs, their memory in use, power cap and clocks (nvidia-smi is not on PATH)", None),
        ("note", "not checked: whether another process uses the GPU (nvidia-smi is not on PATH)", None),
        ("note", "not checked: whether the port is free (no /proc)", None),
    ]


def test_only_what_the_launch_needs() -> None:
    assert said(launched(host(gpus=NO_TOOL, processes=NO_TOOL), container={"gpus": None}), "PRE001") == []
    assert len(said(station(gpus=NO_TOOL, memory=Missing("x")), "PRE001")) == 2
    assert said(launched(image=Missing("x")), "PRE001")[0][1].startswith("not checked: the image")
    assert said(launched(host(docker=Missing("x")), image=Missing("x")), "PRE001") == []


def test_another_machine() -> None:
    subject = launched(host(gpus=OVER_THERE), models=OVER_THERE)
    assert said(subject, "PRE002") == [("note", "not asked: gpus, models (the containers run on ssh://box)", None)]
    assert said(subject, "PRE001") == []
    assert said(launched(), "PRE002") == []
