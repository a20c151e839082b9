"""One module per family, one function per rule. Import a new family here."""

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
