"""Members of JSON objects: read by type, kept where nobody reads them, put together of pieces."""
