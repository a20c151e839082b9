"""gb300serve: a recipe launcher and configuration compiler for large models on one NVIDIA GB300."""

__version__ = "0.1.0"
