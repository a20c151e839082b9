"""One module a family, one function a check. A new family is imported here, and nowhere else."""

from gb300serve.preflight.checks import docker, files, gpu, host, memory

FAMILIES = (docker, files, gpu, host, memory)
