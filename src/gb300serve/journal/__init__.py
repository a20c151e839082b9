"""What was launched and what serves, written down: runs and the append-only journal."""
