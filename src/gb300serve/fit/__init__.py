"""Does a launch fit in memory: estimates based on measured boots."""
