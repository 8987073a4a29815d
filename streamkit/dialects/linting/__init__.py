"""What checkers of a dialect's grammar share."""
