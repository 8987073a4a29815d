"""``python -m streamkit`` is the ``streamkit`` command."""

import sys

from streamkit.cli import main

if __name__ == "__main__":
    sys.exit(main())
