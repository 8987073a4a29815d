"""Write the pages of docs/reference that are made of the code: ``python -m tools.docs``, a part of ``make docs``.

``--check`` writes nothing, names each page that lags behind the code, and exits 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tools import field_failures, gateway_config, http_surface, matrix, models, public_api, reference

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
PAGES: Mapping[str, Callable[[], str]] = {
    **reference.PAGES,
    "field-failures.md": field_failures.page,
    "gateway-config.md": gateway_config.page,
    "http-surface.md": http_surface.page,
    "matrix.md": matrix.page,
    "models.md": models.page,
    "public-api.txt": public_api.page,
}


def main(
    arguments: list[str] | None = None,
    folder: Path = FOLDER,
    pages: Mapping[str, Callable[[], str]] = PAGES,
    command: str = "make docs",
) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page lags")
    check = parser.parse_args(arguments).check
    texts = {folder / name: make() for name, make in pages.items()}
    late = [path for path in texts if not path.exists() or path.read_text("utf-8") != texts[path]]
    for path in late:
        if check:
            print(f"docs/reference/{path.name} lags behind the code: run `{command}`", file=sys.stderr)
        else:
            path.write_text(texts[path], "utf-8")
            print(f"wrote docs/reference/{path.name}")
    return int(check and bool(late))


if __name__ == "__main__":
    sys.exit(main())
