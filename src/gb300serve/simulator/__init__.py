"""The simulated Station: a container backend, and the simulated engine that runs in its containers."""
