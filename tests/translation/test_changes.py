"""Members of a written request are left out, set and renamed by their paths."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import orjson
import pytest

from streamkit.conversation.messages import Options, Request, Text, Turn
from streamkit.errors import UsageError
from streamkit.report import StreamReport
from streamkit.translation.bodies import encode_request
from streamkit.translation.changes import Change, operator_changes

BODY: dict[str, Any] = {"a": 1, "b": {"c": 2, "d": None}, "tools": [{"strict": True, "n": 1}, {"n": 2}, 3], "t": True}


@pytest.mark.parametrize(
    ("change", "changed", "lost"),
    [
        (Change("a"), {"b": BODY["b"], "tools": BODY["tools"], "t": True}, 1),
        (Change("b.c"), {**BODY, "b": {"d": None}}, 1),
        (Change("tools.*.strict"), {**BODY, "tools": [{"n": 1}, {"n": 2}, 3]}, 1),
        (Change("x"), None, 0),
        (Change("a.x"), None, 0),
        (Change("b.x.y"), None, 0),
        (Change("a.*.y"), None, 0),
        (Change("tools.strict"), None, 0),
        (Change("a", 2), {**BODY, "a": 2}, 1),
        (Change("a", 1), None, 0),
        (Change("a", True), {**BODY, "a": True}, 1),
        (Change("x", None), {**BODY, "x": None}, 0),
        (Change("x.y", [1]), {**BODY, "x": {"y": [1]}}, 0),
        (Change("b.d", 1), {**BODY, "b": {"c": 2, "d": 1}}, 0),
        (Change("a.x", 1), {**BODY, "a": {"x": 1}}, 1),
        (Change("tools.*.n", 2), {**BODY, "tools": [{"strict": True, "n": 2}, {"n": 2}, 3]}, 1),
        (Change("a", name="z"), {"z": 1, "b": BODY["b"], "tools": BODY["tools"], "t": True}, 0),
    ],
)
def test_a_change_changes_its_member_alone(change, changed, lost):
    body, report = deepcopy(BODY), StreamReport()
    found = change.apply(body, report)
    assert found == (BODY if changed is None else changed)
    assert (found is body) == (changed is None)
    assert body == BODY  # a body may share its objects with a request
    assert report.lost == [("parameter_replaced", change.path)] * lost


def test_a_table_sets_its_members_one_by_one():
    values = {"a.b": 1, "c": {"d": {"e": 2}, "f": {}}, "g": [{"h": 3}]}
    found = [(change.path, change.value) for change in operator_changes(values, ["x", "y.*.z"])[2:]]
    assert found == [("a.b", 1), ("c.d.e", 2), ("c.f", {}), ("g", [{"h": 3}])]


@pytest.mark.parametrize(
    ("values", "drop", "error"),
    [
        ({}, ["model"], "drop: leave model out"),
        ({}, ["stream"], "drop: leave stream out"),
        ({}, ["contents"], "drop: leave contents out"),
        ({}, [""], "drop: write names"),
        ({}, ["a..b"], "drop: write names"),
        ({}, ["tools.*"], "drop: write names"),
        ({"*.a": 1}, [], "set: write names"),
        ({"messages.*.name": 1}, [], "set: leave messages out"),
        ({"toolConfig": {"a": 1}}, [], "set: leave toolConfig out"),
        ({"a": object()}, [], "set: write JSON values"),
    ],
)
def test_what_cannot_work_is_refused(values, drop, error):
    with pytest.raises(UsageError, match=error):
        operator_changes(values, drop)


def test_a_written_request_is_changed():
    request, report = (
        Request("openai-chat", "m", [Turn("user", [Text("hi")])], options=Options(temperature=1)),
        StreamReport(),
    )
    changes = operator_changes({"generationConfig": {"seed": 1}}, ["generationConfig.temperature"])
    body = orjson.loads(encode_request(request, "gemini", changes=changes, report=report))
    assert body["generationConfig"] == {"seed": 1}
    assert report.lost == [("parameter_replaced", "generationConfig.temperature")]
