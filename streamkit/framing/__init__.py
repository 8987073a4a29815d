"""Framings: parse a byte stream into frames, and serialize frames to bytes."""
