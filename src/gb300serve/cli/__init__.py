"""The command line: reads words, wires the layers together, shows results. The only place with terminal output."""
