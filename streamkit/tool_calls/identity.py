"""Find the call of a delta by a vote over index, id, name and whether the call's text is already a complete object.

No single field is reliable: an index may be missing, constant, reused or changed; an id blank, repeated or new in every chunk;
a name repeated or in pieces. The rules are quirks.md R1-R3 and dialects.md §1.7. Each tolerance is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import define

from streamkit.errors import NameTooLong
from streamkit.events import ToolCallDelta
from streamkit.limits import Limits
from streamkit.policy import Policy
from streamkit.report import StreamReport
from streamkit.tool_calls.call import Call, ChoiceState

IDS: Final = 1024  #: ids remembered for a choice: a call without an id may get a new one with each fragment


@define(eq=False)
class Identity:
    """Finds the call of each delta, and sets the call's id and name."""

    limits: Limits
    report: StreamReport
    policy: Policy
    make_id: Callable[[str], str]

    def place(self, choice: ChoiceState, delta: ToolCallDelta) -> tuple[Call, bool]:
        """Return the call of a delta, and whether the call is new. Update the call's id and name."""
        call_id, name = delta.id, delta.name
        if call_id is not None:
            call_id = self._not_blank(call_id)
        if name is not None:
            name = self._not_blank(name)
        index = delta.index
        if name is not None and index is not None and index not in choice.by_index and call_id not in choice.by_id:
            call, is_new = self._new(choice, delta)  # the usual case, for which ``find`` gives the same result
        else:
            call, is_new = self.find(choice, delta, call_id, name)
        if not call.ended:
            choice.last = call
            if delta.index is not None:
                if call.index is None:
                    call.index = delta.index
                choice.by_index[delta.index] = call
            if call_id is not None:
                self.set_id(choice, call, call_id, is_new=is_new)
            if name is not None:
                self.set_name(call, name, is_new=is_new)
            if delta.extras and call.ordinal is None:
                call.add_extras(delta.extras)
            if delta.signature is not None and call.ordinal is None:
                call.signature = delta.signature if call.signature is None else call.signature
        return call, is_new

    def _not_blank(self, value: str) -> str | None:
        """Return an id or name, or None if it is blank (quirks.md R2: blank means absent)."""
        if not value.strip() or value in {"null", "None"}:
            self.report.repair("identity_blank")
            return None
        return value

    def find(
        self, choice: ChoiceState, delta: ToolCallDelta, call_id: str | None, name: str | None
    ) -> tuple[Call, bool]:
        """Return the call of a delta, and whether the call is new, by the vote of dialects.md §1.7."""
        if delta.index is None:
            self.report.repair("index_missing")
        known = choice.by_id.get(call_id) if call_id is not None else None
        if known is not None:
            return self._find_by_id(choice, known, delta, name)
        if delta.index is None:
            last = self._continued(choice, delta, call_id, name)
            return self._new(choice, delta) if last is None else (last, False)
        call = choice.by_index.get(delta.index)
        if call is None:
            last = self._misplaced(choice) if call_id is None and name is None else None
            return self._new(choice, delta) if last is None else (last, False)
        if (call.ended and (name or call_id)) or (name is not None and self._is_another(call, delta, call_id, name)):
            self.report.repair("index_reused")
            return self._new(choice, delta)
        if self.policy.two_objects == "split" and self._is_second_object(call, delta, call_id, name):
            self.report.repair("objects_split")
            another, is_new = self._new(choice, delta)
            another.name = call.name
            return another, is_new
        return call, False

    def _misplaced(self, choice: ChoiceState) -> Call | None:
        """Return the call that text at an unknown index continues: the only call without an index, or the latest; else None.

        Some servers number a call's start by the tool's place in the request, and its text by the order of calls. Such a
        server is recognised by a start out of order (quirks.md 14).
        """
        last = choice.last
        if last is None:
            return None
        unplaced = [call for call in choice.calls if call.index is None and not call.ended and not self.complete(call)]
        if len(unplaced) == 1:  # the call started without the index that its text has
            self.report.repair("index_missing")
            return unplaced[0]
        if last.ended or not last.out_of_order or self.complete(last):
            return None
        self.report.repair("index_changed")
        return last

    def _continued(
        self, choice: ChoiceState, delta: ToolCallDelta, call_id: str | None, name: str | None
    ) -> Call | None:
        """Return the latest call if a delta without an index belongs to it, else None."""
        last = choice.last
        if last is None or last.ended:
            return None
        if last.id is None and last.name is None and not _begins_object(delta):
            return last  # the id and name arrive after the arguments (quirks.md 3)
        return None if call_id is not None or (name and self.complete(last)) else last

    def _find_by_id(
        self, choice: ChoiceState, known: Call, delta: ToolCallDelta, name: str | None
    ) -> tuple[Call, bool]:
        if self._is_sent_again(known, delta, name):
            return known, False
        if delta.index is not None and delta.index != known.index:
            at_index = choice.by_index.get(delta.index)
            if at_index is not None and at_index.echo is known:  # a fragment of a call that repeats ``known``
                return at_index, False
            if at_index is not known:
                # some adapters use the function's name as the id, and some dialects send each call whole
                if name is not None and (known.ended or name != known.name or self.complete(known)):
                    return self._new_or_again(choice, known, delta, name)
                self.report.repair("index_changed")
        elif known.ended and name is not None:
            return self._new_or_again(choice, known, delta, name)
        return known, False

    def _new_or_again(self, choice: ChoiceState, known: Call, delta: ToolCallDelta, name: str) -> tuple[Call, bool]:
        """Return a new call with the id of ``known``. If the names agree, its arguments will show if it repeats ``known``."""
        call, is_new = self._new(choice, delta)
        if name == known.name != known.id and call.kind == known.kind:
            call.echo = known
            if len(known.repeated) != known.text.chars:
                known.repeated = known.text.whole()
        return call, is_new

    def _is_sent_again(self, known: Call, delta: ToolCallDelta, name: str | None) -> bool:
        """Return whether a whole call has the id, name and text of an ended call, which some servers send (quirks.md 22)."""
        if not (known.ended and delta.snapshot and name == known.name != known.id):
            return False
        return known.text.equals(delta.arguments or "")

    def _is_another(self, call: Call, delta: ToolCallDelta, call_id: str | None, name: str) -> bool:
        """Return whether a delta with a name and an unknown id, at a used index, begins another call."""
        if call_id is not None and call.id is not None and not call.id_made:
            starts_only = not call.text.chars and not delta.arguments  # a delta that continues a call has text
            return name != call.name or starts_only or self.complete(call)
        if not self.complete(call):
            return False
        differs = call.name is not None and name != call.name  # an equal name may be sent late (quirks.md 40)
        return differs or _begins_object(delta)

    def _is_second_object(self, call: Call, delta: ToolCallDelta, call_id: str | None, name: str | None) -> bool:
        """Return whether to split off a second object that follows a complete one without an id or name (``two_objects``)."""
        if call_id is not None or name is not None or call.ended or call.kind == "custom":
            return False
        return _begins_object(delta) and not call.holds and self.complete(call)

    def complete(self, call: Call) -> bool:
        return call.is_complete(self.limits.json_depth)

    def _new(self, choice: ChoiceState, delta: ToolCallDelta) -> tuple[Call, bool]:
        out_of_order = delta.index is not None and delta.index != len(choice.calls)
        call = Call(delta.choice, delta.kind, delta.index, anonymous=delta.anonymous, out_of_order=out_of_order)
        return call, True

    def set_id(self, choice: ChoiceState, call: Call, call_id: str, *, is_new: bool) -> None:
        if is_new and call_id in choice.by_id:
            if call.echo is None:
                self.duplicate(call)
        elif call.echo is not None:
            self.report.repair("id_repeated")
        elif call.id is None:
            call.id = call_id
            choice.by_id[call_id] = call
        elif call.id_made and call_id not in choice.by_id:
            self.report.repair("id_late")
            if len(choice.by_id) < IDS:
                choice.by_id[call_id] = call
        elif not is_new:
            if call.id == call_id or choice.by_id.get(call_id) is call:
                self.report.repair("id_repeated")
            else:
                self.report.repair("id_changed")

    def duplicate(self, call: Call) -> None:
        """Give a call a new id, because another call already has its id."""
        self.report.repair("id_duplicate")
        call.id = self.make_id("call_")

    def set_name(self, call: Call, name: str, *, is_new: bool) -> None:
        if call.name is None:
            call.name = name
        elif name == call.name:
            self.report.repair("name_repeated")
        elif call.text.chars or call.ordinal is not None or self.policy.name_pieces == "first":
            self.report.repair("name_changed")
        elif not is_new:
            self.report.repair("name_pieces")
            if len(call.name) + len(name) > self.limits.name_bytes:
                raise NameTooLong(self.limits.name_bytes)
            call.name += name


def _begins_object(delta: ToolCallDelta) -> bool:
    return (delta.arguments or "").lstrip().startswith("{")
