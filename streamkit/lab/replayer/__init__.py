"""Recordings served again: the same status, headers and reads at their times, and the same end. Nothing asks the network.

Source: observe.md O27, O28.
"""
