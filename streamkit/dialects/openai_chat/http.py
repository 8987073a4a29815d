"""Chat Completions over HTTP.

Source: clients.md §10.1, §10.2; openai 3.54 for paths and headers; Azure OpenAI's REST reference for deployments.
"""

from __future__ import annotations

import re

from streamkit.dialects.http import HTTP, Endpoint, Surface, segment
from streamkit.dialects.vocabulary.openai import ANSWER_HEADERS, FEATURES, MODELS, azure_root


def _deployment(base: str, model: str) -> str:
    """Return the URL of an Azure deployment: the one in the base URL, or else the model."""
    named = base.partition("/deployments/")[2]
    return f"{azure_root(base)}/deployments/{named or segment(model)}/chat/completions"


HTTP_HALF = HTTP(
    endpoint=Endpoint(
        url=lambda base, _model, _stream: f"{base}/chat/completions",
        pasted="/chat/completions",
        deployment=_deployment,
        features=FEATURES,
        passed=ANSWER_HEADERS,
    ),
    surface=Surface(
        generate=("/v1/chat/completions",), path=re.compile(r"(?:^/?|/v1)/chat/completions\Z"), models=MODELS
    ),
)
