"""One module a family, one function a check. A new family is imported here, and nowhere else."""

from gb300serve.preflight.checks import docker, facts, files, gpu, image, memory, surroundings

FAMILIES = (docker, facts, files, gpu, image, memory, surroundings)
