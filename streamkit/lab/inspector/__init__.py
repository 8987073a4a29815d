"""The inspector: a page on a listener of its own that shows streams, bytes beside events, as they pass or from recordings."""
