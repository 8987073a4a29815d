"""The inspector: a web page that shows streams, live or recorded, with each read's bytes next to its events."""
