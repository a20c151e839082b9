"""One model over several machines: GPUs and what the engine is told to use, the network between them."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.lint.book import rule
from gb300serve.lint.subject import LintSubject
from gb300serve.recipe.gpus import Gpus

# By the names that the engines take, vLLM's first, SGLang's second.
_TENSOR = ("tensor_parallel_size", "tp_size", "tp")
_PIPELINE = ("pipeline_parallel_size", "pp_size", "pp")
# Data parallelism counts in other ways, from engine to engine.
_OTHER = ("data_parallel_size", "dp_size", "dp")


@rule("NOD001", "error")
def nodes_not_used(subject: LintSubject) -> Iterator[Finding]:
    """The machines have another number of GPUs than the engine splits the model over.

    Why: tensor x pipeline is the number of GPUs that hold the model; with fewer than `nodes` has the engine refuses to
    start or leaves machines idle, with more it waits for GPUs that never come. `gpus: all` is a Station's one.
    Fix: write `pipeline_parallel_size: n` (SGLang: `pp_size: n`) beside `nodes: n`, with the tensor size of one
    machine.
    """
    nodes, each = subject.recipe.nodes, _count(subject.container.gpus)
    if nodes == 1 or any(name in subject.options for name in _OTHER):
        return
    tensor, pipeline = _size(subject, _TENSOR), _size(subject, _PIPELINE)
    if tensor * pipeline != nodes * each:
        message = (
            f"the model is split over {tensor} x {pipeline} GPUs (tensor x pipeline), "
            f"and {nodes} nodes with {each} each have {nodes * each}"
        )
        place = 1 if subject.recipe.engine.name == "sglang" else 0
        hint = f"write {_PIPELINE[place]}: {nodes}, and {_TENSOR[place]}: {each}"
        yield Finding(("nodes",), message, hint)


@rule("NOD002", "warning")
def nodes_without_host_network(subject: LintSubject) -> Iterator[Finding]:
    """The engines of several machines are not on their hosts' network.

    Why: they find each other on ports that they choose as they start, and NCCL on more of them: a bridge network
    publishes none of those.
    Fix: write `network: host`.
    """
    if subject.recipe.nodes > 1 and subject.container.network != "host":
        yield Finding(
            ("container", "network"), "the machines of one model cannot reach each other", "write network: host"
        )


def _count(gpus: Gpus | None) -> int:
    if gpus is None or gpus.by == "all":
        return 1
    return int(gpus.values[0]) if gpus.by == "count" else len(gpus.values)


def _size(subject: LintSubject, names: tuple[str, ...]) -> int:
    given = [subject.options[name] for name in names if name in subject.options]
    return given[0] if given and isinstance(given[0], int) else 1
