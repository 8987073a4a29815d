"""Serve recordings: the same status, headers and reads at their recorded times, and the same end, without any network.

Source: observe.md O27, O28.
"""
