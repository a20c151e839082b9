"""The engines: which options a version has, whether a value is right, and how it is said in words."""
