"""The recipe file: read with a position for every value, merged with its parent, validated."""
