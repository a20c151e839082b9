"""`nvidia-smi --query-compute-apps`: the processes that compute on a GPU."""

from dataclasses import dataclass

from gb300serve.host.missing import Missing
from gb300serve.host.sources.nvidia_csv import mebibytes, rows, whole

# The name comes last: it is the only value that may hold a comma.
COMMAND = ("nvidia-smi", "--query-compute-apps=pid,used_memory,gpu_uuid,process_name", "--format=csv")


@dataclass(frozen=True, slots=True)
class ComputeProcess:
    """`used` is bytes of the GPU's memory; `gpu` is its UUID."""

    pid: int
    name: str | None = None
    used: int | None = None
    gpu: str | None = None


def parse(text: str) -> tuple[ComputeProcess, ...] | Missing:
    """The processes, with what is known of each."""
    found = tuple(rows(text))
    known = tuple(
        ComputeProcess(pid, row.get("process_name"), mebibytes(row.get("used_gpu_memory")), row.get("gpu_uuid"))
        for row in found
        if (pid := whole(row.get("pid"))) is not None
    )
    return known if known or not found else Missing(f"nvidia-smi said: {text.splitlines()[-1].strip()}")
