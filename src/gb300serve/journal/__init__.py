"""Runs and the append-only journal: what was launched, by whom, and what is running."""
