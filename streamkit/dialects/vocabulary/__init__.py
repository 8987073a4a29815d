"""The different words of dialects for the same things: stop reasons, errors, efforts, counts, sealed reasoning."""
