"""Facts of the host: pure parsers of what its files and tools say."""
