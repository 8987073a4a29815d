"""Stages that change the text of a response, wherever the provider's deltas cut it."""
