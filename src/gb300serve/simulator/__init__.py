"""The simulated Station: a container backend, and the engine stand-in that runs in its containers."""
