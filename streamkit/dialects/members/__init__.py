"""Read JSON members by type, keep unread ones, and join members that arrive in pieces."""
