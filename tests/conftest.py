"""Fixtures for every test."""

import pytest

pytest.register_assert_rewrite("tests.support")

pytest_plugins = ["tests.support.golden", "tests.support.station"]
