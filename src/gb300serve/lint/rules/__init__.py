"""One module a family, one function a rule. A new family is imported here, and nowhere else."""

from gb300serve.lint.rules import (
    evidence,
    image,
    memory,
    mounts,
    network,
    offload,
    options,
    parsers,
    sglang,
    speculation,
    values,
)

FAMILIES = (
    evidence, image, memory, mounts, network, offload, options, parsers, sglang, speculation, values,
)  # fmt: skip
