"""Use cases: one per file, without terminal output."""
