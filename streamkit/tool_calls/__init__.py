"""Tool calls: assign fragments to calls, and check that the JSON of each call is complete."""
