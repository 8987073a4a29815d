"""Run the ``streamkit`` command by ``python -m streamkit``."""

import sys

from streamkit.cli import main

if __name__ == "__main__":
    sys.exit(main())
