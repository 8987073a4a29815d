"""Make text from outside safe to show, and make ids and names."""
