"""``docs/reference/drift.md``: what the newest SDKs define and streamkit does not know: ``python -m tools.drift``.

Each type of an SDK is a JSON schema (``tools/drift_sdks.py``). From it comes a minimal document for every event, block, item,
tool and member. streamkit reads the document twice: as it is, and with the name replaced by an invented one. **A name is
unknown if the two are read and translated alike**, and the invented name ends where streamkit keeps what it does not know
(``extras``, an aside ``unknown_event`` or ``metadata``), in an error, or nowhere. What is inside a thing that is kept whole on
purpose (the result of a tool that the provider ran) is not counted again.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import orjson

from streamkit.dialects import DIALECTS
from streamkit.errors import StreamkitError
from streamkit.events import Aside
from streamkit.framing.eventstream import serialize_eventstream
from streamkit.framing.ndjson import serialize_ndjson
from streamkit.framing.sse import serialize_sse
from streamkit.limits import DEFAULT_LIMITS
from streamkit.machines import Chain
from streamkit.report import StreamReport
from streamkit.sync import transcode_sync
from streamkit.translation.bodies import decode_request, decode_response, encode_request, encode_response
from tools import docs
from tools.drift_sdks import SDKS, Compared, Schemas

#: What becomes of an unknown name. ``unreadable``: the documents have another fault, which is one of this tool.
FATES: Final = ("kept", "dropped", "refused", "unreadable")
MADE_ID: Final = re.compile(r"[_-][A-Za-z0-9]{20,}")  #: in an id that streamkit makes
ERROR: Final = "Error: "  #: the beginning of an error in place of what is written
TRANSLATED: Final = 2  #: Most pairs of documents that are translated, which takes long.
PROBE: Final = "invented_name"
UNKNOWN: Final = {"unknown_event", "metadata"}  #: the kinds of aside that hold what a decoder does not know
#: The kinds of names, in the singular and the plural.
KINDS: Final = {"event": "events", "item": "blocks and items", "tool": "tools", "member": "members"}


@attrs.define(eq=False)
class Entry:
    """A name of an SDK in one place, with documents that contain it."""

    dialect: str
    schemas: Schemas
    kind: str  #: event, item, tool or member
    name: str  #: the type, or the type and its member: ``text.citations``
    parent: str  #: the member that the type is in
    pairs: Sequence[tuple[Any, Any]]  #: documents with the name, each with the same that has the invented name instead
    without: Any = None  #: the document without the member
    fate: str = ""  #: known, whole (inside a thing that is kept whole), or one of ``FATES``

    @property
    def own(self) -> str:
        """The name alone."""
        return self.name.rpartition(".")[2] if self.kind == "member" else self.name


# -- documents of a schema ---------------------------------------------------------------------------------------------


def entries(dialect: str, schemas: Schemas) -> Iterator[Entry]:
    """Yield each name once, the nearest to the root first. Only what is known and read is looked into."""
    seen: set[str] = set()
    root = "event" if schemas.place == "stream" else ""
    queue: deque[tuple[Any, Any, str, str]] = deque([(schemas.root, lambda value: value, root, schemas.place)])
    while queue:
        schema, wrap, kind, parent = queue.popleft()
        variants = [each for each in schemas.variants(schema) if "properties" in each]
        for variant in variants:
            key = json.dumps([kind == "tool", variant], sort_keys=True, default=str)
            members = {name: each for name, each in variant["properties"].items() if name not in schemas.left_out}
            whole = schemas.minimal(variant)
            tag = schemas.tag_of(members)
            name = whole[tag] if tag else parent
            if key in seen or name in schemas.left_out:
                continue
            seen.add(key)
            full = {member: schemas.minimal(inner, member, full=True) for member, inner in members.items()} | whole
            if tag and (len(variants) > 1 or kind):
                pairs = [(wrap(each), wrap({**each, tag: PROBE})) for each in (whole, full)]
                yield (entry := judged(Entry(dialect, schemas, kind or "item", name, parent, pairs)))
                if entry.fate != "known":
                    continue
            alternatives = variant.get("x-union", ())
            for member, inner in members.items():
                if member == tag:
                    continue
                values, is_alternative = schemas.values_of(inner, member), member in alternatives
                words = schemas.values_of(members["type"], "type") if "type" in members and not tag else []
                bases = [{}] if is_alternative else [whole] if alternatives else [whole, full]
                bases += [{**full, "type": word} for word in words if not alternatives]
                rests = [{other: base[other] for other in base if other != member} for base in bases]
                pairs = [(wrap({**rest, member: v}), wrap({**rest, PROBE: v})) for rest in rests for v in values]
                rest, shown = rests[0], member if is_alternative else f"{name}.{member}"
                what = (kind or "item") if is_alternative else "member"
                yield (entry := judged(Entry(dialect, schemas, what, shown, parent, pairs, wrap(rest))))
                if entry.fate == "known" and is_read(entry, len(values)):
                    for below, put in schemas.nested(inner):
                        into = lambda v, wrap=wrap, rest=rest, member=member, put=put: wrap({**rest, member: put(v)})  # noqa: E731
                        queue.append((below, into, "tool" if member == "tools" else "", member))


# -- reading and translating -------------------------------------------------------------------------------------------


def read(dialect: str, schemas: Schemas, document: Any) -> Any:
    """Return what streamkit's reader of a dialect makes of a document: neutral values, or the error as text."""
    named, report, data = DIALECTS[dialect], StreamReport(), sent(dialect, schemas, document)
    try:
        if schemas.place == "request":
            return decode_request(data, dialect)
        if schemas.place == "response" and named.bodies is not None:
            return named.bodies.decode_response(data, DEFAULT_LIMITS, report)
        chain = Chain(named.parser(DEFAULT_LIMITS, report), named.decoder(DEFAULT_LIMITS, report))
        events = [*chain.feed(data), *chain.finish()]
        return events if chain.fault is None else f"{type(chain.fault).__name__}: {chain.fault}"
    except StreamkitError as error:
        return f"{type(error).__name__}: {error}"


def translate(dialect: str, schemas: Schemas, document: Any, target: str) -> tuple[str, StreamReport]:
    """Return what is written for another dialect, or the error; and the report, with the losses."""
    report, data = StreamReport(), sent(dialect, schemas, document)
    try:
        if schemas.place == "request":
            request = decode_request(data, dialect, report=report)
            written = encode_request(request, target, linked_media="drop", report=report)
        elif schemas.place == "response":
            written = encode_response(decode_response(data, dialect, report=report), target, clock=lambda: 1.0)
        else:
            written = b"".join(transcode_sync([data], dialect, target, report=report, clock=lambda: 1.0))
        return MADE_ID.sub("_", written.decode("latin-1")), report
    except StreamkitError as error:
        return f"{ERROR}{type(error).__name__}: {error}", report


def sent(dialect: str, schemas: Schemas, document: Any) -> bytes:
    """Return the bytes that have a document: a body, or a stream."""
    documents = schemas.within(document)
    if schemas.place != "stream":
        return orjson.dumps(documents[0])
    if dialect == "bedrock":  # the name of an event is a header
        documents = [
            ({":message-type": "event", ":event-type": name}, each[name]) for each in documents for name in each
        ]
        return b"".join(serialize_eventstream(headers, orjson.dumps(members)) for headers, members in documents)
    if dialect == "ollama":
        return b"".join(serialize_ndjson(orjson.dumps(each)) for each in documents)
    return b"".join(serialize_sse(orjson.dumps(each), event=each.get("type")) for each in documents)


# -- what is unknown ---------------------------------------------------------------------------------------------------


def compare(compared: Compared) -> tuple[Counter[str], list[Entry]]:
    """Return how many names of each kind were compared, and those that are unknown."""
    every = [entry for schemas in compared.schemas for entry in entries(compared.dialect, schemas)]
    return Counter(entry.kind for entry in every), [entry for entry in every if entry.fate in FATES]


def judged(entry: Entry) -> Entry:
    """Return the entry with its fate."""
    dialect, schemas, fates = entry.dialect, entry.schemas, set()
    for number, pair in enumerate(entry.pairs):
        real, invented = (read(dialect, schemas, each) for each in pair)
        places = set(_places(invented))  # where the invented name ends
        is_kept = places & UNKNOWN or any(place.endswith(".extras") for place in places)
        if repr(real) != repr(invented).replace(PROBE, entry.own):
            return attrs.evolve(entry, fate="known")
        if isinstance(invented, str):
            fates.add("refused" if PROBE in invented else "unreadable")
        elif places and not is_kept and not (entry.kind == "tool" and "Tool.raw" in places):
            return attrs.evolve(entry, fate="whole")
        else:
            fates.add("kept" if places else "dropped")
        for target in targets(dialect, schemas) if number < TRANSLATED else ():
            said, other = (translate(dialect, schemas, each, target) for each in pair)
            if _said(*said, entry.own) != _said(*other, PROBE):
                return attrs.evolve(entry, fate="known")
    return attrs.evolve(entry, fate=min(fates, key=FATES.index))


def is_read(entry: Entry, values: int) -> bool:
    """Return whether a reader makes something of a member. If not, the member is passed over on purpose in this place.

    The first documents, as many as there are ``values``, differ from the one without the member in the member alone.
    """
    documents = [entry.without, *(document for document, _ in entry.pairs[:values])]
    without, *others = (repr(read(entry.dialect, entry.schemas, each)) for each in documents)
    return any(each != without for each in others)


def targets(dialect: str, schemas: Schemas) -> list[str]:
    """Return the other dialects into which a document can be translated."""
    answering = schemas.place != "response"
    return [name for name, other in DIALECTS.items() if name != dialect and (answering or other.answers_whole)]


def _said(text: str, report: StreamReport, name: str) -> Any:
    return text.replace(name, "_"), report.losses, [(kind, what.replace(name, "_")) for kind, what in report.lost]


def _places(value: Any, place: str = "") -> Iterator[str]:
    """Yield where the invented name is in neutral values: the class and its field, or the kind of the aside."""
    if isinstance(value, Aside):
        if PROBE in value.type or PROBE in repr(value.raw):
            # an event that is known may be kept whole as metadata; a member that is not known is metadata of its own name
            yield "whole" if value.kind == "metadata" and PROBE not in value.type else value.kind
    elif attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            yield from _places(getattr(value, field.name), f"{type(value).__name__}.{field.name}")
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _places(each, place)
    elif PROBE in repr(value):
        yield place or "error"


# -- the page ----------------------------------------------------------------------------------------------------------


def section(compared: Compared, counts: Mapping[str, int], unknown: Sequence[Entry]) -> str:
    """Return the page's section of one SDK."""
    things: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)  # places
    members: defaultdict[tuple[str, ...], defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))  # names
    for entry in unknown:
        place, owner = entry.schemas.place, entry.name.removesuffix(f".{entry.own}")
        inside = "" if entry.parent in {owner, place} else _code(entry.parent)
        place += "" if entry.fate == "kept" else f" ({entry.fate})"
        if entry.kind == "member":
            members[_code(owner), inside][place].append(_code(entry.own))
        else:
            things[_code(entry.name), entry.kind, inside].append(place)
    lines = [
        f"## {compared.title}",
        "",
        f"Compared: {_counted(counts)}. Unknown: {_counted(Counter(each.kind for each in unknown))}.",
    ]
    if things:
        lines += ["", "| unknown name | kind | inside the member | found in a |", "|---|---|---|---|"]
        rows = sorted(things, key=lambda thing: [*KINDS].index(thing[1]))
        lines += [f"| {' | '.join(thing)} | {', '.join(dict.fromkeys(things[thing]))} |" for thing in rows]
    if members:
        lines += ["", "| unknown members | members of | inside the member | found in a |", "|---|---|---|---|"]
        lines += [
            f"| {', '.join(dict.fromkeys(names))} | {' | '.join(of)} | {place} |"
            for of, places in members.items()
            for place, names in places.items()
        ]
    return "\n".join(lines) + "\n"


def page(sections: Sequence[str]) -> str:
    """Return the whole page, with the sums of what its sections count."""
    compared, unknown = (sum_of(sections, word) for word in ("Compared", "Unknown"))
    head = HEAD.format(compared=sum(compared.values()), unknown=sum(unknown.values()), kinds=_counted(unknown))
    return "\n".join([head, *sections])


def sum_of(sections: Sequence[str], word: str) -> Counter[str]:
    """Return the sum of what the sections count as ``Compared`` or ``Unknown``, by kind."""
    counts: Counter[str] = Counter()
    for line in re.findall(rf"{word}: ([^.]+)\.", "\n".join(sections)):
        for number, kind in re.findall(r"(\d+) ([a-z ]+)", line):
            counts[next(one for one, many in KINDS.items() if kind in {one, many})] += int(number)
    return counts


def _counted(counts: Mapping[str, int]) -> str:
    named = [f"{counts[one]} {one if counts[one] == 1 else many}" for one, many in KINDS.items() if counts.get(one)]
    return ", ".join(named) or "nothing"


def _code(name: str) -> str:
    return f"`{name}`" if name else ""


HEAD: Final = """<!-- Generated by tools/drift.py from the SDKs' types: run `python -m tools.drift` after a release. -->
# What the SDKs know and streamkit does not

This page compares streamkit with the newest SDKs. Of the {compared} names that these SDKs define, streamkit does not know
{unknown}: {kinds}.

A name belongs to an event, to a block or item, to a type of tool, or to a member of one of these. It may occur in a stream,
in a whole response or in a request. streamkit does not know a name if it treats the name exactly like an invented one. What
happens to an unknown name depends on the output:

- In output of the same dialect, streamkit writes the name and its value unchanged.
- In output of another dialect, streamkit counts a [loss](losses.md), or refuses the request.
- If the last column of a table says "dropped", the name and its value are lost, and streamkit does not count this.

If the output has the same dialect, streamkit sends all tools of a provider unchanged, even unknown ones. It never sends an
unknown tool in a request of another dialect.

streamkit passes some values on as a whole on purpose, such as the result of a tool that the provider ran. The tables do not
list names inside these values. For the SDK `ai`, this page compares only the names in streams, because the package exports
no schema of its messages.

Each row of the tables also shows where the name occurs. The column *inside the member* has the name of the member that
contains the item. If this cell is empty, the item is at the top level, or has the same name as the member that contains it.
"""


def whole_page() -> str:
    return page([section(each, *compare(each)) for each in (make() for make in SDKS)])


if __name__ == "__main__":
    sys.exit(docs.main(pages={"drift.md": whole_page}, command="make drift"))
