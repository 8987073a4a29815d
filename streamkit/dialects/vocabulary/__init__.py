"""The words that dialects have for one thing: stop reasons, errors, efforts, counts, sealed reasoning."""
