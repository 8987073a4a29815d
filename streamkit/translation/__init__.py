"""Translation between dialects: whole bodies, citations, searches, the next request of a tool loop, and pass-through."""
