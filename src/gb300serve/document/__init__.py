"""YAML files of ours: read with a position for every value, and validated against a model."""
