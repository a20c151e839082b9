"""What differs between machines, not between releases."""
