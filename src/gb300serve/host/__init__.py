"""Facts of the host, and parsers for its files and tools."""
