"""Shared by all layers: errors, diagnostics, text, values, redaction, ports, files."""
