"""Bytes and structure: how a dialect's frames are cut out of a byte stream, and written into one."""
