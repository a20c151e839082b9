"""One module a verb: `run` is the command."""
