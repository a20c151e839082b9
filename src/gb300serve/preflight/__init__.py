"""Checks that compare host facts with a plan before anything is created."""
