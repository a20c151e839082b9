"""The recipe file and the site file: reading, merging with parents, validation, writing."""
