import pytest

from gb300serve.plan.model import ContainerPlan, Mount
from gb300serve.render.target import LOST, Gap, TargetService, binds, common_gaps, head, with_secrets
from tests.render.test_docker_run import plan


@pytest.mark.parametrize(("seconds", "patience"), [(454.5, 5855), (720, 6120), (None, 7200)])
def test_patience_is_a_boot_and_one_tuning_of_the_kernels(seconds: float | None, patience: int) -> None:
    assert TargetService(8000, seconds).patience == patience


def test_declared_secrets_alone_are_written() -> None:
    written = with_secrets("a$${secret:K}b${secret:NONE}$", "<{}>".format, lambda text: text.replace("$", "S"), {"K"})
    assert written == "aS<K>bS{secret:NONE}S"


def test_the_head_of_a_file_is_comments_alone() -> None:
    gaps = (Gap(LOST, ("container", "mounts"), "a\nb: \x1b[31mc", "d\r\ne"),)
    text = head(plan(), "a file", ("Start it.",), gaps)
    assert text.splitlines()[1:] == [
        "# Start it.",
        "#",
        "# What `docker run` says and this file does not, or says otherwise:",
        "# warning TGT001 container.mounts: a b: c (d e)",
    ]
    assert head(plan(), "a file", (), ()).startswith("# bench/v1 as a file, compiled by gb300serve from plan ")


def test_what_nothing_checks_any_more() -> None:
    container = ContainerPlan("", mounts=(Mount("/a", "/b", sha256="0" * 64), Mount("name", "/c"), Mount("/d", "/e")))
    assert [gap.message for gap in common_gaps(plan(container=container))] == [
        "nothing checks the sha256 of /a",
        "name: docker takes a source without a `/` for a volume, and it is left out",
    ]
    assert [mount.source for mount in binds(container)] == ["/a", "/d"]
