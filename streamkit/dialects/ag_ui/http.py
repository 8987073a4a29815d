"""AG-UI over HTTP: one path, to which a run is posted. An agent is asked at its own URL.

The model stands in the path or in ``forwardedProps``, where the path's is the one that is asked.

Source: ui-protocols.md §2.6; @ag-ui/client 1.0.0, ``HttpAgent``.
"""

from __future__ import annotations

import re
from typing import Final

from streamkit.dialects.http import HTTP, Endpoint, Surface, model_in_path

#: Where a run is posted, and the same with a model.
PATH: Final = "/v1/ag-ui"


HTTP_HALF = HTTP(
    endpoint=Endpoint(url=lambda base, _model, _stream: base),
    surface=Surface(
        generate=(PATH, f"{PATH}/{{model:.+}}"),
        path=re.compile(r"(?:^/?|/v1)/ag-ui(?:/.*+)?\Z", re.DOTALL),
        in_words=f"{PATH}/MODEL",
        address=model_in_path(PATH, "forwardedProps.model", "forwardedProps"),
    ),
)
