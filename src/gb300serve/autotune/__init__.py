"""The kernel-tuning cache: the sets on disk, the set that a release expects, pins."""
