"""Read TOML files: their values, and faults with line and column."""
