"""The simulated engine: `python -m gb300serve.simulator.engine`."""
