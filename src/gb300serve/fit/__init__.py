"""Will it boot: the memory arithmetic, on what was measured."""
