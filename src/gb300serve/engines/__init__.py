"""The engines: the options of each version, their arguments, their logs and endpoints."""
