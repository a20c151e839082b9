"""A recipe and a site, compiled: the launch as pure data."""
