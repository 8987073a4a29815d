"""Runs of frames that differ in a few strings only, read without parsing the rest of them again."""
