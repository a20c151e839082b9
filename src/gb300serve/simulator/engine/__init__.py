"""The stand-in for an engine: `python -m gb300serve.simulator.engine`."""
