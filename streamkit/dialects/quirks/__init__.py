"""Building blocks of quirks. A quirk changes a correct test stream as some server would, so that a reader must repair it."""
