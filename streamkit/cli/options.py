"""Options that several commands share."""

from __future__ import annotations

import argparse

from streamkit.policy import POLICIES


def add_policy(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--policy",
        choices=POLICIES,
        default="tolerant",
        help="what is tolerated: strict repairs nothing, lenient accepts more ends and splits calls (default: tolerant)",
    )
