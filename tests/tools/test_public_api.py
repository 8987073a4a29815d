"""The public API is frozen: a name changes only with its file and a line in the changelog."""

from __future__ import annotations

import pytest

from tools import public_api

CHANGELOG = public_api.ROOT / "CHANGELOG.md"
PAGE = "## Python\n\nstreamkit.pipe(source, *stages)\nstreamkit.Pipe\n\n## Keys of the gateway's configuration\n\n[server] port: integer = 8080\n"
BEFORE = public_api.released("0.1.0", PAGE)


def test_the_file_has_the_names_and_signatures_of_the_code():
    assert public_api.PAGE.read_text("utf-8") == public_api.page(), (
        "the public API differs from docs/reference/public-api.txt: run `make docs`, "
        'and write a line with each changed name in the part "Unreleased" of CHANGELOG.md'
    )


def test_the_changelog_has_each_name_that_differs_from_the_last_release():
    unreleased = public_api.unreleased_part(CHANGELOG.read_text("utf-8"))
    missing = public_api.unmentioned(public_api.RELEASED.read_text("utf-8"), public_api.page(), unreleased)
    assert missing == [], 'write a line for each of these names in the part "Unreleased" of CHANGELOG.md'


@pytest.mark.parametrize(
    ("page", "unreleased", "missing"),
    [
        pytest.param(PAGE, "", [], id="nothing changed"),
        pytest.param(PAGE.replace("*stages", "stages"), "", ["Python: streamkit.pipe"], id="a signature"),
        pytest.param(
            PAGE.replace("*stages", "stages"), "`pipes` is new", ["Python: streamkit.pipe"], id="another word"
        ),
        pytest.param(PAGE.replace("*stages", "stages"), "- `pipe` takes a list", [], id="a signature, with a line"),
        pytest.param(PAGE.replace("streamkit.Pipe\n", ""), "", ["Python: streamkit.Pipe"], id="a name that went"),
        pytest.param(PAGE + "[server] host: string\n", "`server.host` is new", [], id="a new key, with a line"),
        pytest.param(
            PAGE.replace("8080", "80"), "", ["Keys of the gateway's configuration: [server] port"], id="a default"
        ),
    ],
)
def test_a_changed_name_is_missing_until_the_changelog_has_it(page, unreleased, missing):
    assert public_api.unmentioned(BEFORE, page, unreleased) == missing


def test_the_unreleased_part_ends_at_the_next_version():
    assert public_api.unreleased_part("# Changelog\n\n## Unreleased\n\n- `a`\n\n## 0.1.0\n\n- `b`\n").strip() == "- `a`"


@pytest.mark.parametrize("name", ["streamkit.transcode(", "streamkit.plugin.FrameDecoder(", "streamkit.Pipe.__aiter__"])
def test_the_file_has_what_people_import(name):
    written = public_api.PAGE.read_text("utf-8")
    assert (f"\n{name}" in written) is ("__" not in name)
