"""Responses in the background, in dialects whose clients look up a response by its id (``Surface.stored``).

A client that asked for a stream gets it as usual and may disconnect. A client that asked for no stream gets an empty response
object at once, and its connection is closed while the work continues. Such a client has declared that nobody has to wait, so
the response runs to its end. Only the upstream's time-outs limit it, not ``unattended_s``.

Source: resume.md §5, §5.4, §13.1; R27.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from aiohttp import web
from attrs import frozen

from streamkit.dialects import client_named
from streamkit.events import ProviderFailed
from streamkit.resume import Meta
from streamkit.web.refusals import Refused
from streamkit.web.reply import Outlet, Shape
from streamkit.web.resume.answer import ResumableOutlet, meta_of, resumable_outlet, takes_ids
from streamkit.web.resume.look_up import RETRY_S
from streamkit.web.resume.settings import RESUMING, Resumable, Resuming
from streamkit.web.resume.state import Shaping, states_of
from streamkit.web.surfaces import Ask, surface_of


@frozen(kw_only=True)
class Kept:
    """Where a response is written, and what the client got already."""

    outlet: Outlet | None = None  #: None: the usual outlet of its request or message
    shape: Shape | None = None
    #: The response that was sent already, if the client does not wait.
    response: web.StreamResponse | None = None


async def keeping(
    request: web.Request,
    ask: Ask,
    *,
    resumable: Resumable | None = None,
    outlet: Outlet | None = None,
    headers: Mapping[str, str] | None = None,
) -> Kept:
    """Return how to keep the response to a client's request, if it is kept. ``outlet`` is a message's, which can't be resumed.

    A client that does not wait gets its response here, with ``headers``. Raises Refused if its response can't be kept.
    """
    resuming, form = request.config_dict.get(RESUMING), surface_of(ask.dialect).stored
    if outlet is None and ask.stream and not ask.background:
        outlet = resumable_outlet(request, ask.dialect, is_array=ask.as_array, model=ask.model, resumable=resumable)
    is_kept = ask.background or (ask.stored is not None and ask.stored.is_kept)
    if resuming is None or form is None or not is_kept:
        return Kept(outlet=outlet)
    answer_id = resuming.store.new_id(form.prefix)
    previous_id = "" if ask.stored is None else ask.stored.previous_id
    writer = form.writer(answer_id, ask.background, previous_id)
    shape = Shaping(writer, answer_id, ask.stored, states_of(request, resuming))
    if not ask.background:
        return Kept(outlet=outlet, shape=shape)
    meta = meta_of(request, resuming, answer_id, ask.dialect, model=ask.model, background=True)
    background = BackgroundOutlet(
        request, resuming, answer_id, meta, has_ids=resuming.wanted(request) and takes_ids(meta)
    )
    response = None
    if ask.at_once:
        settings = client_named(ask.dialect)[0].settings(ask.request)
        begun = form.queued(answer_id, int(meta.created), ask.model, settings)
        response = await background.answer(begun, headers or {})
    return Kept(outlet=background, shape=shape, response=response)


class BackgroundOutlet(ResumableOutlet):
    """Writes the response to ``request`` in the background."""

    def __init__(self, request: web.Request, resuming: Resuming, log_id: str, meta: Meta, *, has_ids: bool) -> None:
        super().__init__(request, resuming, log_id, meta, has_ids=has_ids)
        self._unattended_s = math.inf

    async def answer(self, begun: bytes, headers: Mapping[str, str]) -> web.Response:
        """Respond to the client now. Everything after this goes only to the log. Raises Refused."""
        log = await self._created()
        if log is None:
            self._discard()
            failed = ProviderFailed("unavailable", "the answer can't be kept now; ask again", retry_after_s=RETRY_S)
            raise Refused(failed)
        response = web.Response(body=begun, content_type="application/json", headers=headers)
        response.headers["Cache-Control"] = "no-store"
        response.force_close()
        try:
            self._writer = await self.begin(response)
            await response.write_eof()
        except BaseException as error:
            log.discard()
            # the client left before it got the response's id, so nobody could read the response
            if isinstance(error, ConnectionError):
                raise Refused(ProviderFailed("server", "the client left")) from error
            raise
        self._log, self._ids = log, None
        self.goes_on()
        return response
