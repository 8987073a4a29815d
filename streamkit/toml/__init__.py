"""Files in TOML: their values, and faults with line and column."""
