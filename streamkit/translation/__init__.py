"""From one dialect to another: whole bodies, citations, searches, the next request of a tool loop, what passes."""
