from gb300serve.compare.costs import Pair, pairs
from gb300serve.recipe.model import EvidenceSection


def figure(name: str, value: float, workload: str = "prose") -> EvidenceSection:
    return EvidenceSection(figure=name, value=value, unit="tok/s", workload=workload, method="m")


def test_the_same_figure_on_the_same_workload_is_one_pair() -> None:
    before = [figure("1 stream", 80.0), figure("8 streams", 0)]
    after = [figure("8 streams", 5), figure("1 stream", 90.0), figure("1 stream", 70.0, "agents")]
    found = pairs(before, after)
    assert found == (
        Pair("1 stream", "tok/s", "prose", 80.0, 90.0),
        Pair("8 streams", "tok/s", "prose", 0, 5),
        Pair("1 stream", "tok/s", "agents", None, 70.0),
    )
    assert [pair.percent for pair in found] == [12.5, None, None]
