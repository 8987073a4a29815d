"""Tools that a vendor defines and the client runs, as functions for the models of other vendors.

A vendor trains its models on such a tool, so its definition has no schema: a shell, a text editor, a memory, a computer. For
a model of another vendor the definition is a function with the row's name, description and schema. A call of that function is
what the client expects anyway (Anthropic), or becomes an item of its dialect again (Responses, ``Tool.called``). What
a member of the definition says, such as the size of the screen, is in the description.

A definition carries the version of the tool in its type. A type that looks like a newer version of a row is no row: its calls
may have another form, so a request to another vendor is refused (``unknown_version``).

Source: dialects.md §2.3, §3.2; anthropic 2.14, ``types/beta``; openai 3.57, ``types/responses``; Anthropic, "Bash tool",
"Text editor tool", "Memory tool", "Computer use tool"; OpenAI, "Shell", "Local shell", "Apply patch", "Computer use".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import field, frozen

from streamkit.conversation.messages import CacheMark, CallForm, Extras, Tool
from streamkit.dialects.members.values import has_value
from streamkit.events import Aside, QualifiedName
from streamkit.text.identifiers import flat_name

ADDED, DONE = "response.output_item.added", "response.output_item.done"
RESPONSES_VENDOR: Final = "openai-responses"
_VERSION: Final = re.compile(r"_\d{8}$")


@frozen
class ClientTool:
    """A tool that the client runs, as a function."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    #: What the description says of a member of the definition, by the member's name; "": nothing, since it is implied.
    described: Mapping[str, str] = field(factory=dict)
    called: CallForm | None = None  #: the item that a call is in the vendor's dialect; None: a function call

    def tool(self, raw: Extras, cache: CacheMark | None = None) -> Tool:
        """Return the tool that the definition ``raw`` defines."""
        more = [words.format(raw[name]) for name, words in self.described.items() if words and has_value(raw.get(name))]
        description = " ".join([self.description, *more])
        return Tool(self.name, description, self.parameters, cache=cache, raw=raw, called=self.called)


def form_lost(raw: Extras) -> list[tuple[str, str]]:
    """Return what a definition loses if it becomes a function, as losses; empty for a definition that has a schema."""
    kind = str(raw.get("type"))
    row = ANTHROPIC.get(kind) or RESPONSES.get(kind)
    if row is None and kind not in TOOLSETS:
        return []
    expressed = {"type", "name", "cache_control", *(("configs",) if row is None else row.described)}
    members = [name for name, value in raw.items() if name not in expressed and has_value(value)]
    return [("client_tool", kind), *(("parameter", f"{kind}.{name}") for name in members)]


def unknown_version(kind: str) -> str:
    """Return what is wrong with a type that looks like another version of a tool in the tables; "" for any other type."""
    family = _VERSION.sub("", kind)
    known = [each for each in (*ANTHROPIC, *TOOLSETS) if _VERSION.sub("", each) == family]
    if not known or kind in known:
        return ""
    return f"no function is known for this version; known are {', '.join(known)}"


def _object(required: Iterable[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    names = [*required]
    return {"type": "object", "properties": properties, **({"required": names} if names else {})}


def _one_of(*values: str, description: str = "") -> dict[str, Any]:
    return {"type": "string", "enum": [*values], **({"description": description} if description else {})}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _number(description: str, kind: str = "integer") -> dict[str, Any]:
    return {"type": kind, "description": description}


def _numbers(description: str, count: int) -> dict[str, Any]:
    return {
        "type": "array", "items": {"type": "integer"}, "minItems": count, "maxItems": count, "description": description,
    }  # fmt: skip


# -- Anthropic ---------------------------------------------------------------------------------------------------------

_BASH: Final = ClientTool(
    "bash",
    "Run a command in a bash session that lasts from call to call. Give either `command` or `restart`.",
    _object(
        [],
        command=_text("The command to run."),
        restart={"type": "boolean", "description": "Start the session again, for instance if it hangs."},
    ),
)
_PATH: Final = _text("The absolute path of the file or folder.")
_RANGE: Final = _numbers("For `view` of a file: the first and the last line to show; -1 is the end of the file.", 2)
_OLD: Final = _text("For `str_replace`: the text to replace, which must occur exactly once in the file.")
_FILE: Final = _text("For `create`: the content of the file.")
_LINE: Final = _number("For `insert`: the number of the line after which to insert; 0 is the beginning of the file.")


def _editor(name: str, *commands: str, **properties: Mapping[str, Any]) -> ClientTool:
    return ClientTool(
        name,
        "View, create and edit text files. A folder's view lists what is in it.",
        _object(
            ["command", "path"], command=_one_of(*commands), path=_PATH, file_text=_FILE, old_str=_OLD, insert_line=_LINE,
            view_range=_RANGE, **properties,
        ),
        {"max_characters": "A view shows at most {} characters."},
    )  # fmt: skip


_EDITS: Final = ("view", "create", "str_replace", "insert")
_NEW: Final = _text("For `str_replace`: the new text. For `insert`: the text to insert.")
#: The latest version has a member of its own for the text to insert; clients take either.
_INSERTED: Final = _text("For `insert`: the text to insert.")
_OLD_EDITOR: Final = _editor("str_replace_editor", *_EDITS, "undo_edit", new_str=_NEW)
_MEMORY: Final = ClientTool(
    "memory",
    "Keep notes in files under /memories, which last beyond this conversation. View the folder before a task.",
    _object(
        ["command"],
        command=_one_of("view", "create", "str_replace", "insert", "delete", "rename"),
        path=_text("The path under /memories, for all commands except `rename`."),
        view_range=_RANGE,
        file_text=_FILE,
        old_str=_OLD,
        new_str=_text("For `str_replace`: the new text."),
        insert_line=_LINE,
        insert_text=_INSERTED,
        old_path=_text("For `rename`: the present path."),
        new_path=_text("For `rename`: the new path."),
    ),
)
_POINT: Final = _numbers("The x and y coordinate in pixels, from the top left corner of the screen.", 2)
_ACTIONS: Final = (
    "key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click", "double_click",
    "screenshot", "cursor_position",
)  # fmt: skip
_MORE_ACTIONS: Final = (
    "left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait", "triple_click",
)  # fmt: skip
_KEYS: Final = _text(
    "For `type`: the text. For `key` and `hold_key`: the keys, such as ctrl+s. For clicks: keys to hold."
)


def _computer(*actions: str, **properties: Mapping[str, Any]) -> ClientTool:
    return ClientTool(
        "computer",
        "Control a computer by its mouse, keyboard and screen. Take a screenshot to see what an action did.",
        _object(["action"], action=_one_of(*actions), coordinate=_POINT, text=_KEYS, **properties),
        {
            "display_width_px": "The screen is {} pixels wide.",
            "display_height_px": "It is {} pixels high.",
            "display_number": "Its X11 display is number {}.",
        },
    )


_MOVES: Final[Mapping[str, Mapping[str, Any]]] = {
    "start_coordinate": _numbers("For `left_click_drag`: where to begin.", 2),
    "scroll_direction": _one_of("up", "down", "left", "right", description="For `scroll`."),
    "scroll_amount": _number("For `scroll`: the clicks of the wheel."),
    "duration": _number("For `hold_key` and `wait`: the seconds.", "number"),
}
#: The tools of Anthropic, by the type of their definition.
ANTHROPIC: Final[Mapping[str, ClientTool]] = {
    "bash_20241022": _BASH,
    "bash_20250124": _BASH,
    "text_editor_20241022": _OLD_EDITOR,
    "text_editor_20250124": _OLD_EDITOR,
    "text_editor_20250429": _editor("str_replace_based_edit_tool", *_EDITS, new_str=_NEW),
    "text_editor_20250728": _editor(
        "str_replace_based_edit_tool", *_EDITS, new_str=_text("For `str_replace`: the new text."), insert_text=_INSERTED
    ),
    "memory_20250818": _MEMORY,
    "computer_20241022": _computer(*_ACTIONS),
    "computer_20250124": _computer(*_ACTIONS, *_MORE_ACTIONS, **_MOVES),
    "computer_20251124": _computer(
        *_ACTIONS, *_MORE_ACTIONS, "zoom", **_MOVES,
        region=_numbers("For `zoom`: the left, top, right and bottom coordinate of the part to show.", 4),
    ),
}  # fmt: skip
_CLICK: Final = {"coordinate": _POINT, "text": _text("Keys to hold, such as ctrl+shift.")}
_SECONDS: Final = _number("The seconds.")
#: The functions of Anthropic's computer toolset, by the name that a call has next to the toolset's name.
_COMPUTER_TOOLS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "cursor_position": ("Tell where the cursor is.", _object([])),
    "double_click": ("Click twice with the left button.", _object([], **_CLICK)),
    "hold_key": ("Hold keys down for a time.", _object(["text", "duration"], text=_text("The keys."), duration=_SECONDS)),
    "key": (
        "Press a key, or keys together, such as ctrl+s.",
        _object(["text"], text=_text("The keys."), repeat=_number("How many times; 1 if left out.")),
    ),
    "left_click": ("Click with the left button.", _object([], **_CLICK)),
    "left_click_drag": (
        "Drag with the left button.",
        _object(["start_coordinate", "coordinate"], start_coordinate=_POINT, **_CLICK),
    ),
    "left_mouse_down": ("Press the left button, and hold it.", _object([])),
    "left_mouse_up": ("Release the left button.", _object([])),
    "middle_click": ("Click with the middle button.", _object([], **_CLICK)),
    "mouse_move": ("Move the cursor.", _object(["coordinate"], coordinate=_POINT)),
    "right_click": ("Click with the right button.", _object([], **_CLICK)),
    "screenshot": ("Show the screen.", _object([])),
    "scroll": (
        "Scroll at a place.",
        _object(
            ["scroll_direction", "scroll_amount"], **_CLICK, scroll_direction=_one_of("up", "down", "left", "right"),
            scroll_amount=_number("The clicks of the wheel."),
        ),
    ),
    "triple_click": ("Click three times with the left button.", _object([], **_CLICK)),
    "type": ("Type a text.", _object(["text"], text=_text("The text."))),
    "wait": ("Wait for a time.", _object(["duration"], duration=_SECONDS)),
    "zoom": (
        "Show a part of the screen enlarged.",
        _object(["region"], region=_numbers("The left, top, right and bottom coordinate of the part.", 4)),
    ),
}  # fmt: skip
COMPUTER: Final = "computer"
#: The definitions of Anthropic that are several functions: ``toolset_name`` and ``name`` of a call.
TOOLSETS: Final = frozenset({"computer_toolset_20260801"})


def toolset(raw: Extras, cache: CacheMark | None = None) -> list[Tool]:
    """Return the functions of the toolset that the definition ``raw`` defines. All have that definition as ``raw``."""
    configs = raw.get("configs") or {}
    off = {name for name, config in configs.items() if isinstance(config, Mapping) and config.get("enabled") is False}
    return [
        Tool(
            flat_name(COMPUTER, name), f"On the computer: {description}", parameters, cache=cache, raw=raw,
            qualified=QualifiedName(COMPUTER, name),
        )
        for name, (description, parameters) in _COMPUTER_TOOLS.items()
        if name not in off
    ]  # fmt: skip


# -- OpenAI Responses --------------------------------------------------------------------------------------------------


def _called(
    kind: str, prefix: str, member: str, *own: str, defaults: Mapping[str, Any] | None = None, **members: Any
) -> CallForm:
    """Return how a call is an item of the type ``kind``."""
    events = (
        Aside(RESPONSES_VENDOR, "client_tool", ADDED, {"status": "in_progress"}),
        Aside(RESPONSES_VENDOR, "client_tool", DONE, {"status": "completed"}),
    )
    return CallForm({"type": kind, **members}, prefix, member, events, frozenset(own), defaults or {})


_LIMITS: Final = {"timeout_ms": _number("The time after which the command is stopped, in milliseconds.")}
_COORDINATES: Final = {name: {"type": "integer"} for name in ("x", "y", "scroll_x", "scroll_y")}
_SCREEN: Final = ClientTool(
    "computer",
    "Control a computer by its mouse, keyboard and screen. The result is a screenshot.",
    _object(
        ["actions"],
        actions={
            "type": "array",
            "items": _object(
                ["type"],
                type=_one_of(
                    "click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait"
                ),
                button=_one_of("left", "right", "wheel", "back", "forward", description="For `click`."),
                path={
                    "type": "array",
                    "items": _object(["x", "y"], x={"type": "integer"}, y={"type": "integer"}),
                    "description": "For `drag`: the points to pass.",
                },
                keys={
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "For `keypress`; else keys to hold.",
                },
                text=_text("For `type`: the text."),
                **_COORDINATES,
            ),
            "description": "The actions to do, one after the other.",
        },
    ),
    {
        "display_width": "The screen is {} pixels wide.",
        "display_height": "It is {} pixels high.",
        "environment": "The computer is a {}.",
    },
    _called("computer_call", "cu", "action", "actions", "action", pending_safety_checks=[]),
)
#: The tools of OpenAI Responses, by the type of their definition.
RESPONSES: Final[Mapping[str, ClientTool]] = {
    "apply_patch": ClientTool(
        "apply_patch",
        "Create, update or delete one file by a patch.",
        _object(
            ["type", "path"],
            type=_one_of("create_file", "update_file", "delete_file"),
            path=_text("The path of the file."),
            diff=_text(
                "For `create_file` and `update_file`: the changes as a V4A diff, without a header: `@@` begins a change, "
                "and each line begins with ` `, `-` or `+`. All lines of a new file begin with `+`."
            ),
        ),
        called=_called("apply_patch_call", "apc", "operation"),
    ),
    "computer": _SCREEN,
    "computer_use_preview": _SCREEN,
    "local_shell": ClientTool(
        "local_shell",
        "Run one command on the user's computer. No shell reads it, unless the command is one, such as bash -lc.",
        _object(
            ["command"],
            type=_one_of("exec"),
            command={"type": "array", "items": {"type": "string"}, "description": "The program and its arguments."},
            env={"type": "object", "description": "Variables of the environment."},
            working_directory=_text("The folder in which to run."),
            **_LIMITS,
        ),
        called=_called("local_shell_call", "lsh", "action", defaults={"type": "exec", "env": {}}),
    ),
    "shell": ClientTool(
        "shell",
        "Run commands in a shell on the user's computer.",
        _object(
            ["commands"],
            commands={"type": "array", "items": {"type": "string"}, "description": "The commands to run."},
            max_output_length=_number("The most characters of each command's output."),
            **_LIMITS,
        ),
        {"environment": ""},  # a container is none of the client's
        _called("shell_call", "sh", "action"),
    ),
}
#: How Responses writes a call of the tool search that a client runs.
SEARCHED: Final = _called("tool_search_call", "tsc", "arguments", execution="client")
