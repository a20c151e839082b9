"""Fixtures for every test."""

pytest_plugins = ["tests.support.golden", "tests.support.station"]
