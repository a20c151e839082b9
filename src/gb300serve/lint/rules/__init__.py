"""One module a family, one function a rule. A new family is imported here, and nowhere else."""

from gb300serve.lint.rules import (
    arguments,
    container,
    evidence,
    image,
    lengths,
    memory,
    model,
    mounts,
    nodes,
    offload,
    options,
    parsers,
    pinned,
    ports,
    records,
    secrets,
    sglang,
    speculation,
    values,
)

FAMILIES = (
    arguments, container, evidence, image, lengths, memory, model, mounts, nodes, offload, options, parsers, pinned,
    ports, records, secrets, sglang, speculation, values,
)  # fmt: skip
