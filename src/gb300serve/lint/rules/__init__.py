"""One module a family, one function a rule. A new family is imported here, and nowhere else."""

from gb300serve.lint.rules import (
    container,
    evidence,
    image,
    memory,
    model,
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
    container, evidence, image, memory, model, mounts, network, offload, options, parsers, sglang, speculation, values,
)  # fmt: skip
