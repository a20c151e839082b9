"""A plan in the form that something else runs: one module a target."""
