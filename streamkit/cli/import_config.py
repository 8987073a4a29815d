"""``streamkit import``: write the gateway's configuration from another gateway's."""

from __future__ import annotations

import argparse
from pathlib import Path

from streamkit.cli.streams import STDOUT, say, write
from streamkit.errors import SourceFailed, UsageError
from streamkit.report import Status
from streamkit.toml.findings import ConfigError

HELP = "write the gateway's configuration from that of another gateway (LiteLLM)"
DETAIL = """\
Reads the configuration of another gateway, and writes a configuration for `streamkit serve`. Lists everything that the new
configuration cannot express, with the place in the old file and what to do instead. The command does not copy keys. The keys
stay in environment variables, and the command prints the names of these variables. If the gateway would refuse a line of the
new configuration, the command names the line, and its exit status is 1.

So far, the command reads only the file config.yaml of LiteLLM's proxy. The command needs the extra `import`: pip
install 'streamkit-llm[import]'.

examples:
  streamkit import litellm config.yaml > gateway.toml
  streamkit import litellm config.yaml -o gateway.toml
  streamkit serve --config gateway.toml --check-config
"""
STATUSES = """\
exit status:
  0  done: the notes on standard error list what is different
  1  failed: the file could not be read, the output not written, or the gateway refuses the output: correct it first
  2  usage, or the file is no such configuration
"""
EXTRA = "streamkit import needs the extra `import`: pip install 'streamkit-llm[import]' (missing: {})"


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit import``."""
    command.add_argument("format", choices=["litellm"], help="the other gateway")
    command.add_argument("file", metavar="FILE", help="the configuration file of the other gateway")
    command.add_argument(
        "--out", "-o", metavar="FILE", help="the new file, which must not exist (default: -, standard output)"
    )


def run(options: argparse.Namespace) -> Status:
    """Convert a configuration. Raises UsageError, and OSError if a file cannot be read or written."""
    try:  # imported here, since other commands do not need the extras
        import tomli_w  # noqa: PLC0415
        import yaml  # noqa: PLC0415

        from streamkit.gateway.config_file import parse_config  # noqa: PLC0415
        from streamkit.gateway.keys import read_key_file  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(EXTRA.format(error.name)) from error
    from streamkit.gateway.litellm import convert  # noqa: PLC0415 - not needed by other commands

    try:
        config = yaml.safe_load(Path(options.file).read_bytes())
    except (yaml.YAMLError, ValueError) as error:  # ValueError: such as a date in month 13
        raise UsageError(f"{options.file}: not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise UsageError(f"{options.file}: its lists or mappings are nested too deeply") from error
    made = convert(config)
    for path, note in made.notes:
        say(f"{path}: {note}")
    if not made.tables["routes"]:
        say("no model could be converted, so nothing is written")
        return Status.FAILED
    text = f"# Written by `streamkit import litellm`.\n\n{tomli_w.dumps(made.tables)}"
    status, name = Status.DONE, options.out or "the output"
    try:  # the gateway's environment has the values of the variables, so any value will do here
        parse_config(
            text,
            name=name,
            env=dict.fromkeys(filter(None, made.variables), "a-key"),
            read_file=lambda file: read_key_file(Path(file)),
        )
    except ConfigError as error:
        for finding in error.findings:
            say(f"the gateway refuses {finding}")
        status = Status.FAILED
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{options.file}: a text has half a surrogate pair, which UTF-8 cannot express") from error
    if options.out in (None, STDOUT):
        write(data)
    else:
        try:
            with Path(options.out).open("xb") as file:
                file.write(data)
        except FileExistsError as error:
            raise UsageError(f"{options.out} exists already") from error
        except OSError as error:
            raise SourceFailed(f"cannot write {options.out}: {error.strerror}") from error
    counts = {"upstream": made.tables["upstreams"], "route": made.tables["routes"], "note": made.notes}
    say(", ".join(f"{len(each)} {noun}{'' if len(each) == 1 else 's'}" for noun, each in counts.items()))
    return status
