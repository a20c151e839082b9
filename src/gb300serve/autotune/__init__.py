"""The kernel-tuning cache: sets on disk, what a release expects, seeding, pinning, verifying."""
