"""Text from elsewhere, made fit to be shown, and the names that are made where none came."""
