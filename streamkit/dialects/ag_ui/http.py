"""AG-UI over HTTP: one path, to which a run is posted. An agent is asked at its own URL.

The model stands in the path or in ``forwardedProps``, where the path's is the one that is asked.

Source: ui-protocols.md §2.6; @ag-ui/client 1.0.0, ``HttpAgent``.
"""

from __future__ import annotations

import re
from typing import Final

from streamkit.conversation.messages import Request
from streamkit.dialects.http import HTTP, Address, Endpoint, RequestLine, Surface
from streamkit.errors import BadRequest

#: Where a run is posted, and the same with a model.
PATH: Final = "/v1/ag-ui"


def _address(line: RequestLine, request: Request) -> Address:
    """The model of the path, or of the request; the answer is always a stream."""
    model = line.match_info.get("model") or request.model
    if not model:
        instead = f"name one in the path, {PATH}/MODEL, or in forwardedProps"
        raise BadRequest("forwardedProps.model", f"the name of a model is needed, and there is none; {instead}")
    return Address(model, stream=True)


HTTP_HALF = HTTP(
    endpoint=Endpoint(url=lambda base, _model, _stream: base),
    surface=Surface(
        generate=(PATH, f"{PATH}/{{model:.+}}"),
        path=re.compile(r"(?:^/?|/v1)/ag-ui(?:/.*+)?\Z", re.DOTALL),
        in_words=f"{PATH}/MODEL",
        address=_address,
    ),
)
