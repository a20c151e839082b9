"""Two releases, and what one changes against the other."""
