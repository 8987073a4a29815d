"""What the quirks of dialects are made of: changes of a conforming stream that a reader must repair."""
