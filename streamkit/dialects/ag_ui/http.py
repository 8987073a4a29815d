"""AG-UI over HTTP: clients post a run to one path. Requests to an agent go to its own URL.

The model's name is in the path or in ``forwardedProps``. If both have a name, the path counts. The body of an error is the
event RUN_ERROR, which clients display as it is.

Source: ui-protocols.md §2.1, §2.2, §2.6; @ag-ui/client 1.0.0, ``HttpAgent``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from streamkit.dialects.ag_ui.wire import ERROR_CODES, VENDOR, error_code
from streamkit.dialects.base import Errors
from streamkit.dialects.http import HTTP, Endpoint, Surface, model_in_path
from streamkit.dialects.members.values import text_of
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport

PATH: Final = "/v1/ag-ui"  # a model's name may follow


def _decode_error(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    if document.get("type") != "RUN_ERROR" or text_of(document.get("message")) is None:
        return None
    failed = provider_failed({name: value for name, value in document.items() if name != "type"}, VENDOR, ERROR_CODES)
    return evolve(failed, raw=document)


def _error_body(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    own = failed.raw if failed.vendor == VENDOR and isinstance(failed.raw, dict) else {}
    return {**own, "type": "RUN_ERROR", "message": failed.message, "code": error_code(failed, report)}, {}


ERRORS = Errors(vendors=frozenset({VENDOR}), words=ERROR_CODES, decode=_decode_error, encode=_error_body)


HTTP_HALF = HTTP(
    endpoint=Endpoint(url=lambda base, _model, _stream: base),
    surface=Surface(
        generate=(PATH, f"{PATH}/{{model:.+}}"),
        path=re.compile(r"(?:^/?|/v1)/ag-ui(?:/.*+)?\Z", re.DOTALL),
        in_words=f"{PATH}/MODEL",
        address=model_in_path(PATH, "forwardedProps.model", "forwardedProps"),
    ),
)
