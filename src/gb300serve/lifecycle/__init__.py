"""Launching: what runs and what should run, made into steps, and the steps carried out."""
