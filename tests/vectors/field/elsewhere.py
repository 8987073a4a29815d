"""Cases that no stream of bytes can show: what covers them, or what they wait for."""

from __future__ import annotations

from tests.vectors.field.case import OUTSIDE, Elsewhere

CASES = (
    Elsewhere(
        number=34, refs="praxis-proxy/ai#1000",
        cause="made ids that start again with each response",
        does="A made id is random, so that no two turns share one.",
        covered_by="tests/tool_calls/test_accumulate.py::test_made_ids_differ_between_turns",
    ),
    Elsewhere(
        number=35, refs="CherryHQ/cherry-studio#16921",
        cause="results paired with calls by the tool's name",
        does="Every call has an id of its own to pair by; calls and results of a history without ids are paired by name, else in order, and get one.",
        covered_by="tests/test_pairing.py::test_calls_without_ids_are_answered_by_name_else_in_order",
    ),
    Elsewhere(
        number=47, refs="openclaw#96441; asyar#513; jarvis#560",
        cause="arguments in a history as an object for Chat, or as text for Ollama",
        does="Each dialect has its own form of arguments, in answers as in requests.",
        covered_by="tests/seeds/test_s2.py::test_a_tool_message_is_a_result_of_the_user_and_the_ids_stay",
    ),
    Elsewhere(
        number=69, refs="traceloop/openllmetry#4394",
        cause="the end of the HTTP body is left unread behind `[DONE]`, and the connection can't be used again",
        does="Reading goes on to the end of the body, and the connection is used again; a body that stays open is left a second later.",
        covered_by="tests/gateway/test_connections.py::test_a_connection_is_used_again_after_a_stream",
    ),
    Elsewhere(
        number=101, refs="theopenco/llmgateway#2334",
        cause="a blank line behind a keep-alive comment, which old clients dispatch as an event",
        does="A comment is written as one line without a blank one.",
        covered_by="tests/framing/test_sse.py::test_a_comment_is_one_line_and_never_an_event",
    ),
    Elsewhere(
        number=103, refs="OmniRoute#7031, #7136, #1146; dive#206; openai-go#227",
        cause="clients that read every line as JSON, comments too",
        does="Keep-alives in the form that the client's dialect reads, or that the configuration says.",
        covered_by="tests/web/test_reply.py::test_the_silence_before_the_first_byte_is_filled_in_each_dialect_and_the_answer_still_reads",
    ),
    Elsewhere(
        number=110, refs="any-llm#847; Logos#706; mistral.rs#57",
        cause="an exception in the middle of a stream closes it without a word",
        does="What arrived is written, then the dialect's error frame, and the report has the exception.",
        covered_by="tests/laws/test_l7_prompt_close.py::test_a_failed_source_is_told_to_the_client_and_to_the_report",
    ),
    Elsewhere(
        number=117, refs="litellm#13774, #17364, #30244, #30245, #31499, #30223, #37140, #36123, #3341; 1rgs/claude-code-proxy#114",
        cause="the client leaves and the upstream goes on",
        does="The upstream's connection is closed at once, before its headers, before its first byte and within its answer, streamed or not.",
        covered_by="tests/gateway/test_cancel.py::test_the_upstream_hears_of_it",
    ),
    Elsewhere(
        number=118, refs="pydantic-ai#4204; mcp python-sdk#1271; simonw/llm#1659; LightRAG#3634, #3712",
        cause="nested generators that nobody closes, or that yield while they are closed",
        does="A pipe closes each stage, outermost first, in the task that leaves it, and yields nothing then.",
        covered_by="tests/test_pipeline.py::test_everything_is_closed_outermost_first_in_the_callers_task",
    ),
    Elsewhere(
        number=119, refs="litellm#8620, #6404, #12685, #18367",
        cause="memory that grows with every stream or chunk",
        does="A long stream passes in flat memory, and every buffer has a limit.",
        covered_by="tests/laws/test_l6_bounded_memory.py::test_a_long_text_passes_in_flat_memory",
    ),
    Elsewhere(
        number=120, refs="aiohttp#7172, #3966, #7590, #2499; aiohttp-sse#370, #450; KiroCrew#7791",
        cause="writing to a client that has left raises, or the handler is never told",
        does="A client that leaves is a usual end: nothing is logged as an error.",
        covered_by="tests/web/test_reply.py::test_a_client_that_leaves_closes_the_source_at_once",
    ),
    Elsewhere(
        number=121, refs="opencode#16697, #19423; mcp-context-forge#1682; opencti#13908; omnigent#2466; agent-network#271",
        cause="queues without a limit behind a reader that stalls",
        does="Nothing is read for a client that takes nothing, beyond a bound in bytes; it is dropped without a terminator.",
        covered_by="tests/web/test_reply.py::test_a_reader_that_stalls_is_dropped_without_a_terminator",
    ),
    Elsewhere(
        number=122, refs="llama.cpp#20872; koboldcpp#1168; llama-swap#236; ktor#3993; xagent#1358",
        cause="proxies that keep a response back until it is whole",
        does="Headers tell them not to.",
        covered_by="tests/web/test_reply.py::test_a_stream_goes_out_as_it_is_and_is_not_for_proxies_to_hold",
    ),
    Elsewhere(
        number=123, refs="dstack#4269; c8s#140",
        cause="a hop that collects events: late first bytes, then clumps",
        does="Each read is written on at once. The gateway's benchmark has a clumping index beside the time to the first byte.",
        covered_by="tests/gateway/test_keep_alive.py::test_nginx_holds_nothing_back",
    ),
    Elsewhere(
        number=124, refs="starlette#2753",
        cause="compression that keeps events back",
        does="Event streams are never compressed, and `no-transform` tells proxies.",
        covered_by="tests/web/test_reply.py::test_a_stream_goes_out_as_it_is_and_is_not_for_proxies_to_hold",
    ),
    Elsewhere(
        number=125, refs="litellm#26102",
        cause="a stage that waits for the whole input",
        does="Each read is handed on before the next is asked for.",
        covered_by="tests/cli/test_convert.py::test_the_first_output_comes_before_the_input_ends",
    ),
    Elsewhere(
        number=126, refs="litellm#34374, #34819, #37322",
        cause="no byte before the first token, and proxies that give up after a minute",
        does="Keep-alives from the start, before the upstream has answered.",
        covered_by="tests/gateway/test_attempts.py::test_keep_alives_go_out_while_upstreams_are_tried_and_the_next_one_still_answers",
    ),
    Elsewhere(
        number=127, refs="Trilium#11628; maxx#592; frontman#731",
        cause="pings of the upstream are swallowed, so that the stream looks stalled",
        does="Every byte of an upstream is a sign of life; the client gets keep-alives of its own dialect.",
        covered_by="tests/web/test_source.py::test_every_byte_is_life",
    ),
    Elsewhere(
        number=128, refs="LLM-API-Key-Proxy#39; jp#708; tracker#575; atomic-agent#323; cocore#139",
        cause="one timer for everything, or none",
        does="Timers for connecting, first byte, silence and the whole, each with its own error.",
        covered_by="tests/web/test_reply.py::test_each_timer_says_which_it_is",
    ),
    Elsewhere(
        number=129, refs="ai-retry#51; NuGuard#455; litellm#38153, #38606, #36267, #6957",
        cause="another attempt after bytes were sent",
        does="Another upstream is asked only before the model spoke; after that there is an error in the stream.",
        covered_by="tests/gateway/test_attempts.py::test_once_the_model_spoke_nobody_else_is_asked",
    ),
    Elsewhere(
        number=134, refs="langwatch#6207; macprovider#830",
        cause="gateways of one dialect",
        does="Every dialect is translated into every other; routes belong to the gateway.",
        covered_by="tests/test_vectors.py::test_transcode_counts_the_losses_and_says_all_the_same",
    ),
    Elsewhere(
        number=135, refs="typescript-sdk#2499",
        cause="a second connection that drops before its first event loses the place to resume at",
        does="The parser tells the last event id, whoever reconnects must keep it.",
        covered_by=OUTSIDE + "streamkit does not reconnect",
    ),
    Elsewhere(
        number=136, refs="soliplex#887; agents-api#552; langgraphjs#2805",
        cause="a producer that dies leaves a stored run open",
        does="Streams are not stored; one that ends too early ends in an error.",
        covered_by=OUTSIDE + "streamkit stores no streams",
    ),
    Elsewhere(
        number=177, refs="ai-dial-adapter-bedrock#191; openai-cookbook#749",
        cause="two choices written into a dialect that has one: their texts and calls interleave in one message",
        does="The first choice that comes is written, each other is one counted loss; the base of encoders sees to it, a plug-in's too.",
        covered_by="tests/dialects/test_one_choice.py::test_an_encoder_that_looks_at_no_choice_is_handed_one",
    ),
    Elsewhere(
        number=197, refs="openai/codex#36942; ggml-org/llama.cpp#23229; NVIDIA-NeMo/Switchyard#384; Codex 0.169",
        cause="tools of MCP servers and sub-agents come in a `namespace`, which nobody but OpenAI knows, and vanish",
        does="Every dialect is offered them as `mcp__server__tool`, in definitions, history and choices; the namespace is a counted loss.",
        covered_by="tests/requests/test_namespaces.py::test_every_dialect_gets_the_tools_by_names_that_tell_them_apart",
    ),
    Elsewhere(
        number=198, refs="MetaFARS/codex-relay#6; router-for-me/CLIProxyAPI#4255",
        cause="a call of such a tool comes back without its namespace, and the client finds no tool of that name",
        does="Calls have their namespace and their short name again from their first event on, shortened names included.",
        covered_by="tests/test_restore.py::test_streamed_calls_of_tools_in_namespaces_are_the_clients_again",
    ),
    Elsewhere(
        number=199, refs="BigPizzaV3/CodexPlusPlus#2156",
        cause="tools that a tool search loads, or `additional_tools` brings, are no tools of the request",
        does="They are offered once, beside those of the request, where they can't stand in the conversation.",
        covered_by="tests/requests/test_namespaces.py::test_tools_that_an_item_brings_are_offered_once_elsewhere_and_stay_in_it_here",
    ),
    Elsewhere(
        number=200, refs="Claude Code 2.1 and Codex 0.169 behind OpenAI Chat",
        cause="a tool that the other dialect lacks is dropped, and its `tool_choice` or `parallel_tool_calls` stays: OpenAI answers 400",
        does="Nothing of a choice is written where no tool is; a choice of some is one among those that are left.",
        covered_by="tests/requests/test_tool_choices.py::test_a_choice_is_not_written_where_no_tool_is",
    ),
    Elsewhere(
        number=201, refs="router-for-me/CLIProxyAPI#364; badrisnarayanan/antigravity-claude-proxy#27; Claude Code 2.1",
        cause="Claude Code's WebSearch forces `web_search` on a model that has none, which then invents the results",
        does="A request that demands such a tool goes to an upstream that has it, or is a 400 that names the tool and the dialect.",
        covered_by="tests/gateway/test_tools.py::test_a_search_that_an_upstream_has_no_word_for_is_asked_of_the_next",
    ),
    Elsewhere(
        number=207, refs="claude-code#23440; opencode#31259, #46335; goose#7343; hermes-agent#67978; langchainjs#8618; CLIProxyAPI#1292; litellm#42186",
        cause="a history with an empty text, or one of white space: beside calls and images, alone, in a tool's result, of the system",
        does="Beside anything else it is left out of requests of another dialect, alone where the server refuses it; each is counted (`turn_empty`).",
        covered_by="tests/requests/test_blank_texts.py::test_a_blank_text_beside_calls_media_and_results_is_left_out_and_counted",
    ),
    Elsewhere(
        number=208, refs="kibana#246393; Roo-Code#4150; pydantic-ai#6255; hermes-agent#55427; archestra#6258; Antigravity-Manager#3396",
        cause="a history that begins with the assistant, for a server that wants the user to speak first (Bedrock, Gemini)",
        does="A short turn of the user is put in front and counted (`turn_added`), or the request is refused, as `assistant_first` says.",
        covered_by="tests/requests/test_blank_texts.py::test_before_an_assistant_who_speaks_first_a_turn_of_the_user_is_put_and_counted",
    ),
    Elsewhere(
        number=237, refs="BerriAI/litellm#8450; nguyenphutrong/quotio#460; headroomlabs-ai/headroom#2026; TheR1D/shell_gpt#741; @ai-sdk/mistral",
        cause="a usage chunk without choices for a client of Chat that never asked for one and reads `choices[0]`",
        does="The chunk is for clients that asked for it; Mistral's packages, which can't ask, get the usage beside the stop reason.",
        covered_by="tests/web/test_exchange.py::test_a_client_of_chat_that_asked_for_no_usage_gets_no_chunk_without_choices",
    ),
    Elsewhere(
        number=238, refs="llm-comply; Cohere and Bedrock behind any client",
        cause='the upstream names no model, and the client gets `"model": ""`',
        does="The model is the upstream's, else the one that was asked for, streamed and whole.",
        covered_by="tests/web/test_exchange.py::test_the_model_is_the_one_asked_for_where_the_upstream_names_none",
    ),
    Elsewhere(
        number=239, refs="Codex 0.169",
        cause="the client closes at the terminator, while the body is still open, and is logged as one that gave up",
        does="Who had all of a whole answer had a whole answer, in the log, in metrics and for the upstream's try.",
        covered_by="tests/gateway/test_cancel.py::test_a_client_that_leaves_at_the_terminator_had_a_whole_answer",
    ),
    Elsewhere(
        number=240, refs="streamkit's own gateway",
        cause="an agent's last turn, in words alone, is logged as `no_tool_calls` and taken for a fault",
        does="The outcome is `answered`; only a demanded call that is missing is `tool_choice_ignored`.",
        covered_by="tests/gateway/test_attempts.py::test_five_models_two_calls_two_texts_a_404_and_a_429_are_each_counted",
    ),
)  # fmt: skip
