"""AG-UI over HTTP: clients post a run to one path. Requests to an agent go to its own URL.

The model's name is in the path or in ``forwardedProps``. If both have a name, the path counts.

Source: ui-protocols.md §2.6; @ag-ui/client 1.0.0, ``HttpAgent``.
"""

from __future__ import annotations

import re
from typing import Final

from streamkit.dialects.http import HTTP, Endpoint, Surface, model_in_path

#: The path for a run. A model's name may follow it.
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
