"""Cloudflare Workers AI's own API (``/ai/run``), as a streamkit dialect."""

from streamkit import plugin as sk
from workers_ai.bodies import BODIES
from workers_ai.checks import QUIRKS, WorkersChecker
from workers_ai.streams import NAME, WorkersDecoder, WorkersEncoder, recognises

DIALECT = sk.Dialect(
    name=NAME,
    title="Cloudflare Workers AI",
    decoder=WorkersDecoder,
    encoder=WorkersEncoder,
    linter=WorkersChecker,
    recognises=recognises,
    keep_alive={"comment": sk.KEEP_ALIVE},
    done_mark=True,
    bodies=BODIES,
    quirks=QUIRKS,
)
