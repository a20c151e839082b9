"""The difference between two releases and the cost of changing from one to the other."""
