"""Keys come from elsewhere, and no message repeats one, wherever in the file it was pasted."""

from __future__ import annotations

import pytest

from tests.gateway.configuring import CANARY, GOOD, faults, with_upstream


@pytest.mark.parametrize("place", ["key", "keys"])
@pytest.mark.parametrize("text", [f'"{CANARY}"', f'"sk-proj-{CANARY}"'])
def test_a_key_in_the_file_is_refused_and_not_repeated(place, text):
    changed = GOOD.replace('{ env = "KEY" }', text) if place == "key" else f"server.keys = [{text}]\n{GOOD}"
    (told,) = faults(changed)
    assert told.endswith('must not be a key itself; write a key as { env = "NAME" } or { file = "path" }')


@pytest.mark.parametrize("header", [f'x-api-key = "{CANARY}"', f'x = "Bearer {CANARY}"', f'x = "sk-proj-{CANARY}"'])
def test_a_key_in_a_header_is_refused_and_not_repeated(header):
    (told,) = faults(GOOD.replace("key =", f"headers = {{ {header} }}\nkey ="))
    assert "must not contain what looks like a key" in told
    assert told.startswith("gateway.toml:4:13: upstreams.a.headers.x")


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('{ env = "NOT_THERE" }', "key.env: the environment variable NOT_THERE is not set"),
        ('{ env = "EMPTY" }', "key.env: the environment variable EMPTY is empty"),
        ('{ env = "LINES" }', "key.env: the environment variable LINES must be one line of visible ASCII characters"),
        (f'{{ env = "{CANARY}" }}', "key.env: the environment variable named here is not set; write the name"),
        ('{ env = "AKIACANARY7E2F41C09" }', "key.env: the environment variable named here is not set; write the name"),
        ('{ file = "nope" }', "key.file: the key file can't be read: No such file or directory; a relative path"),
        (f'{{ file = "{CANARY}" }}', "key.file: the key file can't be read: No such file or directory; a relative path"),
        ('{ file = "empty" }', "key.file: the key file is empty"),
        ('{ file = "binary" }', "key.file: the key file must be one line of visible ASCII characters"),
        ('{ file = "long" }', "key.file: the key file is longer than 16,384 bytes"),
        ("{}", 'key: write a key as { env = "NAME" } or { file = "path" }'),
        ('{ env = "KEY", file = "key" }', 'key: write a key as { env = "NAME" } or { file = "path" }'),
        ('{ evn = "KEY" }', 'key.evn: unknown key; did you mean "env"?'),
        ("{ env = 3 }", "key.env: must be a string, not an integer"),
    ],
)  # fmt: skip
def test_a_key_that_is_not_there_is_a_fault(source, fault):
    (told,) = faults(GOOD.replace('{ env = "KEY" }', source))
    assert f": upstreams.a.{fault}" in told
    assert "AKIA" not in told


@pytest.mark.parametrize(
    "line", ['dialect = "{}"', 'base_url = "{}"', 'auth = "{}"', 'region = "{}"', '"{}" = 1', "[server]\nlog_level = '{}'"]
)  # fmt: skip
@pytest.mark.parametrize("key", ["sk-proj-abcdefgh12345678", "AKIAABCDEFGHIJKLMNOP", "k" * 32])
def test_a_key_in_the_place_of_a_word_is_not_repeated(line, key):
    assert key not in "\n".join(with_upstream(line.format(key)))
