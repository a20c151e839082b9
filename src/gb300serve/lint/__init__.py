"""Findings without a machine: rules over a valid recipe."""
