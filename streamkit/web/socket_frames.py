"""Read the frames of a WebSocket client. This replaces aiohttp's reader, which joins messages without counting their memory.

The bytes of a message count in the budget for all requests from the moment they arrive, also while the message is incomplete,
in however many frames and however slowly it is sent. If the budget has no room, the message is dropped at once, the socket's
next message is an error with the refusal, and no further frame is read. Frames that RFC 6455 forbids, such as those without a
mask, close the socket with the code that the RFC gives.

No extension is negotiated, so no frame is compressed.

Source: RFC 6455 §5.1 to §5.5, §7.4.1, §8.1; limits.md T8.
"""

from __future__ import annotations

from typing import Any, Final, cast

from aiohttp import WebSocketError, WSCloseCode, WSMessage, WSMsgType, web
from aiohttp._websocket.helpers import websocket_mask  # a C function; Python code takes 20 ms for 1 MiB

from streamkit.web.budget import UNCOUNTED_BYTES, Hold
from streamkit.web.refusals import Refused

HEADER_BYTES: Final = 14  #: the largest frame header: two bytes, a length of eight, a mask of four
CONTROL_BYTES: Final = 125  #: the largest payload of a control frame (RFC 6455 §5.5)
_LENGTH_BYTES: Final = {126: 2, 127: 8}
_LAST: Final = 0x80
_MASKED: Final = 0x80
_DATA: Final = frozenset({WSMsgType.TEXT, WSMsgType.BINARY})
_CONTROL: Final = frozenset({WSMsgType.CLOSE, WSMsgType.PING, WSMsgType.PONG})
_CLOSE_CODES: Final = frozenset({1000, 1001, 1002, 1003, *range(1007, 1015), *range(3000, 5000)})


class FrameReader:
    """Reads frames, and puts their messages into ``queue``, from which aiohttp's socket takes them.

    ``hold`` gets the bytes of each message. The reader of the queue returns them for each message that it takes.
    """

    def __init__(self, queue: Any, hold: Hold, message_bytes: int) -> None:
        self._queue = queue
        self._hold = hold
        self._message_bytes = message_bytes
        self._over = False
        self._header = b""  # the received bytes of the next frame's header
        self._kind = WSMsgType.CLOSE  # the type of the present frame
        self._is_last = True  # whether the frame is the last one of its message
        self._mask = b""  # the frame's mask, rotated to its next byte; empty between frames
        self._left = 0  # bytes of the frame that are not received yet
        self._control = b""  # the payload of a control frame
        self._message: bytearray | None = None  # the incomplete message
        self._message_kind = WSMsgType.TEXT

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Read bytes. Return, as aiohttp's protocols require, whether reading is over, and the rest of ``data``."""
        if self._over:
            return True, b""
        try:
            self._read(data)
        except Refused as refused:
            self._over, self._message = True, None
            self._queue.feed_data(WSMessage(WSMsgType.ERROR, refused, None), 0)
        except WebSocketError as error:
            self._over, self._message = True, None
            self._queue.set_exception(error)
        return self._over, b""

    def feed_eof(self) -> None:
        self._queue.feed_eof()

    def _read(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if not self._mask:
                begun, self._header = len(self._header), self._header + data[at : at + HEADER_BYTES]
                size = self._header_size()
                if len(self._header) < size:
                    return
                at += size - begun
                self._begin(self._header[:size])
                self._header = b""
            piece = data[at : at + self._left]
            at, self._left = at + len(piece), self._left - len(piece)
            if piece:
                shown = bytearray(piece)
                websocket_mask(self._mask, shown)
                self._add(shown)
                turn = len(piece) % 4
                self._mask = self._mask[turn:] + self._mask[:turn]
            if not self._left:
                self._end()

    def _header_size(self) -> int:
        """Return the length of the next frame's header. Raises WebSocketError if its first two bytes can't be a client's."""
        if len(self._header) < 2:
            return HEADER_BYTES
        if not self._header[1] & _MASKED:
            raise _broken("a client's frame has no mask")
        return 2 + _LENGTH_BYTES.get(self._header[1] & ~_MASKED, 0) + 4

    def _begin(self, header: bytes) -> None:
        """Handle a frame's header. Raises WebSocketError if the frame is not allowed, and Refused if the budget is full."""
        code, size = header[0] & ~_LAST, header[1] & ~_MASKED
        if code not in {WSMsgType.CONTINUATION, *_DATA, *_CONTROL}:
            raise _broken(f"frames of kind {code} do not exist")
        self._kind, self._is_last = WSMsgType(code), bool(header[0] & _LAST)
        self._left = int.from_bytes(header[2:-4], "big") if size in _LENGTH_BYTES else size
        self._mask = header[-4:]
        if code in _CONTROL:
            if self._left > CONTROL_BYTES or not self._is_last:
                raise _broken(f"a control frame is split, or has more than {CONTROL_BYTES} bytes")
            return
        if (code == WSMsgType.CONTINUATION) != (self._message is not None):
            raise _broken("a message begins inside another, or continues without a beginning")
        if self._message is None:
            self._message, self._message_kind = bytearray(), self._kind
        if len(self._message) + self._left > self._message_bytes:
            raise WebSocketError(WSCloseCode.MESSAGE_TOO_BIG, f"a message has more than {self._message_bytes} bytes")
        # refuse before any of the payload is read, as for a request body
        self._hold.budget.refuse_beyond(self._left - UNCOUNTED_BYTES)

    def _add(self, piece: bytearray) -> None:
        if self._kind in _CONTROL:
            self._control += bytes(piece)
            return
        self._hold.add(len(piece))
        cast("bytearray", self._message).extend(piece)

    def _end(self) -> None:
        """Handle the end of a frame: if it is the message's last frame, queue the message."""
        self._mask = b""
        if self._kind in _CONTROL:
            payload, self._control = self._control, b""
            data = _close_code(payload) if self._kind is WSMsgType.CLOSE else payload
            self._queue.feed_data(WSMessage(self._kind, data, ""), len(payload))
        elif self._is_last:
            text, self._message = bytes(self._message or b""), None
            if self._message_kind is WSMsgType.TEXT:
                _check_utf8(text)
            self._queue.feed_data(WSMessage(self._message_kind, text, ""), len(text))


def _broken(why: str) -> WebSocketError:
    return WebSocketError(WSCloseCode.PROTOCOL_ERROR, why)


def _check_utf8(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise WebSocketError(WSCloseCode.INVALID_TEXT, "a text is not UTF-8") from None


def _close_code(payload: bytes) -> int:
    """Return the code in the payload of a close frame; 0 if there is none."""
    code = int.from_bytes(payload[:2], "big")
    if payload and (len(payload) == 1 or code not in _CLOSE_CODES):
        raise _broken("the code of a close is invalid")
    _check_utf8(payload[2:])
    return code


class HeldSocket(web.WebSocketResponse[bool]):
    """A WebSocket whose messages count in a budget from their first byte. Text messages are received as bytes, too."""

    def __init__(self, hold: Hold, message_bytes: int, **options: Any) -> None:
        super().__init__(**options, compress=False)  # a compressor takes 256 KiB per socket
        self._hold = hold
        self._message_bytes = message_bytes
        self._frames: FrameReader | None = None

    @property
    def _parser(self) -> Any:
        """Our frame reader. aiohttp's protocol uses this attribute instead of the reader that aiohttp creates."""
        return self._frames

    @_parser.setter
    def _parser(self, reader: Any) -> None:
        self._frames = None if reader is None else FrameReader(self._reader, self._hold, self._message_bytes)
