"""OpenAI Responses, streamed and whole. Source: dialects.md §2."""

from __future__ import annotations

from streamkit.dialects.base import Bodies, Dialect, ModelPlace
from streamkit.dialects.bodies.openai import TOOLS
from streamkit.dialects.openai_responses.asides import CITATIONS, SEARCHES
from streamkit.dialects.openai_responses.decode import ResponsesDecoder, recognises
from streamkit.dialects.openai_responses.encode import ResponsesEncoder, settings_of
from streamkit.dialects.openai_responses.http import HTTP_HALF
from streamkit.dialects.openai_responses.lint import ResponsesLinter
from streamkit.dialects.openai_responses.quirks import QUIRKS
from streamkit.dialects.openai_responses.request_in import ResponsesRequestReader
from streamkit.dialects.openai_responses.request_out import capabilities, write
from streamkit.dialects.openai_responses.response import ResponsesBodyDecoder, ResponsesBodyWriter
from streamkit.dialects.openai_responses.tool_searches import TOOL_SEARCHES
from streamkit.dialects.openai_responses.wire import ERRORS, VENDOR
from streamkit.dialects.profiles import Profile, Provider
from streamkit.framing.sse import KEEP_ALIVE

DIALECT = Dialect(
    name="openai-responses",
    title="OpenAI Responses",
    gen_ai_provider="openai",
    decoder=ResponsesDecoder,
    encoder=ResponsesEncoder,
    linter=ResponsesLinter,
    # a keep-alive as an event would have to follow `response.created`, and would need a sequence number
    keep_alive={"comment": KEEP_ALIVE},
    failed_end=None,  # Codex would show the broken transfer instead of the message
    model_place=ModelPlace("status", within="response"),
    recognises=recognises,
    bodies=Bodies.of(
        ResponsesRequestReader, write, ResponsesBodyDecoder, ResponsesBodyWriter, capabilities=capabilities
    ),
    errors=ERRORS,
    http=HTTP_HALF,
    settings=settings_of,
    # newer models misunderstand their earlier message if the next request drops its phase (dialects.md §2.2)
    resent=((VENDOR, "message.phase"),),
    reads_stored=lambda media, dialect: media.url is None and dialect == "openai-chat",
    tools=TOOLS,
    citations=CITATIONS,
    searches=SEARCHES,
    tool_searches=TOOL_SEARCHES,
    quirks=QUIRKS,
    providers=(
        Provider(
            name="azure-responses",
            title="Azure OpenAI, at a base URL that ends in `/openai/v1`",
            auth="azure",
            gen_ai_provider="azure.ai.openai",
        ),
        Provider(
            name="bedrock-responses",
            title="Amazon Bedrock, at a base URL that ends in `/openai/v1`, with a Bedrock API key",
            gen_ai_provider="aws.bedrock",
        ),
    ),
    clients=(
        Profile(name="codex", title="Codex, which ignores the event `error` and reads `response.failed` instead"),
    ),
)
