"""Write ``docs/reference/matrix.md``: what each pair of dialects loses, from the table that the tests hold every stream to.

python tools/matrix.py            # write the page
python tools/matrix.py --check    # fail if it lags behind the table
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from streamkit.dialects import DIALECTS  # noqa: E402 - after the path is set
from tests.pairs import LOSSES  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "matrix.md"
#: Of streams that were cut or failed, and of what the model wrote as no JSON: not of what a whole stream says.
ONLY_WHERE_BROKEN = {"call_withheld", "cut_call", "late_arguments", "error_detail", "arguments_wrapped"}


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "<!-- made by tools/matrix.py: edit tests/pairs.py instead -->"
    yield "# Dialects into dialects"
    yield ""
    yield "Every dialect converts into every other, streaming."
    yield "Text and complete calls with their arguments are never lost; this page says what is, pair by pair."
    yield "The tests hold every recorded stream to it: a loss that is not in its cell fails them, and one that no stream"
    yield "shows does, too."
    yield "In a report each is counted under the kind named here ([what they mean](losses.md))."
    yield ""
    yield "A row is what comes in, a column what goes out; a cell counts the kinds of loss that a whole stream can meet."
    yield ""
    yield f"| from \\ to | {' | '.join(f'`{name}`' for name in LOSSES)} |"
    yield "|---" * (len(LOSSES) + 1) + "|"
    for source, row in LOSSES.items():
        yield f"| [`{source}`](#{source}) | {' | '.join(str(len(_whole(cell))) for cell in row.values())} |"
    yield ""
    yield "## Reasoning that only its vendor can read"
    yield ""
    yield "Signatures and encrypted reasoning never go to another vendor."
    yield "A client's dialect that has a place for such a text carries it, with its vendor's name where that is another's."
    yield "It comes back to its own vendor byte for byte."
    yield ""
    yield "| dialect of the client | a signature | encrypted reasoning |"
    yield "|---|---|---|"
    for name in LOSSES:
        lost = {kind for source, row in LOSSES.items() if source != name for kind in row[name].split()}
        yield f"| `{name}` | {_carried('reasoning_signature', lost, name)} | {_carried('reasoning_opaque', lost, name)} |"
    for source, row in LOSSES.items():
        yield ""
        yield f"## {source}"
        yield ""
        yield f"What a stream of {DIALECTS[source].title} can lose on its way."
        yield ""
        yield "| into | of a whole stream | only where it was cut, or the model wrote no JSON |"
        yield "|---|---|---|"
        for target, cell in row.items():
            yield f"| `{target}` | {_named(_whole(cell))} | {_named(sorted(set(cell.split()) & ONLY_WHERE_BROKEN))} |"


def _whole(cell: str) -> list[str]:
    return sorted(set(cell.split()) - ONLY_WHERE_BROKEN)


def _named(kinds: list[str]) -> str:
    return ", ".join(f"`{kind}`" for kind in kinds) or "nothing"


def _carried(kind: str, lost: set[str], name: str) -> str:
    if kind not in lost:
        return "carried"
    return "carried, but where two blocks had to become one" if name in PARTLY.get(kind, ()) else "lost"


#: Where the place for it is bound to a block: it is lost only with the block's own bounds.
PARTLY = {"reasoning_signature": {"openai-chat", "mistral"}}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if the page lags behind the table")
    options = parser.parse_args(arguments)
    text = page()
    if options.check:
        if not PAGE.exists() or PAGE.read_text("utf-8") != text:
            print(f"{PAGE.relative_to(ROOT)} lags behind tests/pairs.py: run `make docs`", file=sys.stderr)
            return 1
        return 0
    if not PAGE.exists() or PAGE.read_text("utf-8") != text:
        PAGE.write_text(text, "utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
