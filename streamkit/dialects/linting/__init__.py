"""What the grammar checkers of all dialects share."""
