"""Diagnostics in the forms that `lint --format` offers: one module a form."""
