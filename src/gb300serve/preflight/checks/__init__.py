"""One module per family, one function per check. Import a new family here."""

from gb300serve.preflight.checks import docker, files, gpu, host, memory

FAMILIES = (docker, files, gpu, host, memory)
