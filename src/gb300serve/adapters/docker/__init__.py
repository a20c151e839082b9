"""The Docker Engine as a container backend."""
