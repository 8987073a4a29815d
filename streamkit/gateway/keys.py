"""Read keys from the environment or from separate files, never from the configuration file.

A configuration gets copied into tickets and repositories, so a key in it is refused. Keys are never shown: messages name the
variable, or not even that if its name looks like a key itself.

Source: limits.md T6.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from attrs import define, field, frozen

from streamkit.text.quoting import without_secrets
from streamkit.toml.findings import Refusal
from streamkit.web.upstream import Secret

#: The longest accepted key, in bytes. The longest known keys are signed tokens of a few kilobytes.
KEY_BYTES: Final = 16 * 1024
#: Matches a conventional name of an environment variable. A key pasted in place of the name by mistake rarely matches.
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
_KEY: Final = re.compile(rb"[!-~]+")


@frozen(kw_only=True)
class KeySource:
    """Where to read a key: from exactly one of the two."""

    #: The name of an environment variable that contains the key.
    env: str | None = None
    #: A file that contains the key as its only line. A relative path is resolved from the folder of the configuration file.
    file: str | None = None

    def __attrs_post_init__(self) -> None:
        if (self.env is None) == (self.file is None):
            raise Refusal(WRITTEN)


WRITTEN: Final = 'write a key as { env = "NAME" } or { file = "path" }'


@frozen
class KeyFile:
    """The content of a key file, at most one byte more than ``KEY_BYTES``, and its mode as ``stat`` returns it."""

    data: bytes = field(repr=False)
    mode: int

    @property
    def open_to_everyone(self) -> bool:
        return bool(self.mode & stat.S_IROTH)


#: Reads the file with this name in the configuration. Raises OSError.
FileReader: TypeAlias = Callable[[str], KeyFile]


def read_key_file(path: Path) -> KeyFile:
    """Read a key file. Raises OSError."""
    with path.open("rb") as file:
        return KeyFile(file.read(KEY_BYTES + 1), os.fstat(file.fileno()).st_mode)


@define
class KeyReader:
    """Reads keys, and keeps the key files for later warnings."""

    env: Mapping[str, str]
    read_file: FileReader
    files: dict[str, KeyFile] = field(factory=dict)

    def read(self, source: KeySource) -> Secret:
        """Return the key. Raises Refusal if it is missing or not a valid key."""
        if source.env is not None:
            return self._of_variable(source.env)
        return self._of_file(source.file or "")

    def _of_variable(self, name: str) -> Secret:
        plain = _is_plainly_a_name(name)
        shown = f"the environment variable {name}" if plain else "the environment variable named here"
        if name not in self.env:
            hint = "" if plain else "; write the name of a variable, not the key itself"
            raise Refusal(f"{shown} is not set{hint}", at=("env",))
        return _key(self.env[name].encode("utf-8", "surrogateescape"), shown, at="env")

    def _of_file(self, name: str) -> Secret:
        try:
            self.files[name] = file = self.read_file(name)
        except (OSError, ValueError) as error:  # ValueError: the file's name contains a null character
            reason = getattr(error, "strerror", None) or "invalid path"
            raise Refusal(
                f"the key file can't be read: {reason}; a relative path begins at the configuration's folder",
                at=("file",),
            ) from None
        if len(file.data) > KEY_BYTES:
            raise Refusal(f"the key file is longer than {KEY_BYTES:,} bytes", at=("file",))
        return _key(file.data, "the key file", at="file")


def _key(data: bytes, shown: str, *, at: str) -> Secret:
    data = data.strip()
    if not data:
        raise Refusal(f"{shown} is empty", at=(at,))
    if not _KEY.fullmatch(data):
        raise Refusal(f"{shown} must be one line of visible ASCII characters", at=(at,))
    return Secret(data.decode("ascii"))


def _is_plainly_a_name(name: str) -> bool:
    usual = _VARIABLE.fullmatch(name) is not None and ("_" in name or len(name) < 20)
    return usual and without_secrets(name) == name
