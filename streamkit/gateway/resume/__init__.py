"""Where the gateway keeps answers, as its configuration says.

Source: resume.md §12, §18.
"""
