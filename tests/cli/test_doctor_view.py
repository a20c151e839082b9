from gb300serve.cli.views.doctor import document, lines, verdict
from gb300serve.host.missing import Missing
from gb300serve.preflight.run import judge
from tests.support.golden import Golden
from tests.support.hosts import DISPLAY, GB300, host, launched, station


def test_verdicts() -> None:
    subject = launched(host(docker=Missing("gone"), gpus=(DISPLAY, GB300), memory_mode=""))
    found = judge(subject)
    assert verdict("docker", subject.host.docker, found) == "blocks"
    assert verdict("gpus", subject.host.gpus, found) == "note"
    assert verdict("memory_mode", "", found) == "warning"
    assert verdict("memory", subject.host.memory, found) == "ok"
    assert verdict("memory", Missing("no /proc"), found) == "unknown"
    assert verdict("memory", Missing("over there", asked=False), found) == "not asked"


def test_the_table(golden: Golden) -> None:
    subject = station(docker=Missing("gone\x1b[31m"), processes=Missing("no tool"), memory_mode="numa")
    golden("doctor-host.txt", "\n".join(lines(subject, judge(subject))) + "\n")


def test_the_object() -> None:
    subject = launched(host(memory=Missing("no /proc")))
    found = judge(subject)
    made = document(subject, found, "sim")
    assert (made["schema"], made["recipe"], made["on"], made["simulated"]) == (
        "gb300serve.doctor/1",
        "deepseek-v4.1-flash/v14",
        "sim",
        True,
    )
    assert made["facts"]["memory"] == {"verdict": "unknown", "value": None, "missing": "no /proc"}
    assert made["facts"]["processes"] == {"verdict": "ok", "value": [], "missing": None}
    assert made["facts"]["gpus"]["value"][0]["name"] == "NVIDIA GB300"
    assert made["facts"]["gpus"]["value"][0]["clocks_held_back"] == []
    assert made["facts"]["memlock"]["value"] == {"soft": -1, "hard": -1}
    assert made["diagnostics"] == [one.as_json() for one in found]
    assert list(document(station(), (), "docker")["facts"]) == [
        "docker", "gpus", "processes", "memory_mode", "hbm_page_cache", "memory", "memlock", "state"
    ]  # fmt: skip
