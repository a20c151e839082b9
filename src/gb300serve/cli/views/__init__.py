"""Values as lines of text."""
