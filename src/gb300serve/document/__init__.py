"""YAML files: parsing with a position for every value, and validation against a model."""
