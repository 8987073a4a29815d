"""Find errors in payloads, and read them.

Decoders, whole responses and HTTP bodies all use this module. Two rules find an error:

* A payload of a dialect contains an error if ``FORMS`` finds one, whatever else the payload has: an error next to a finish
  reason ``stop`` is an error.
* A payload of no dialect is an error if it has the marks of one (``is_bare_error``): a message, and a code or a word that
  means an error. A message alone is not enough.

Empty members and codes that mean success are not errors: ``"error": null``, ``"errors": []``, ``"status_code": 0``.

Source: dialects.md §1.4, §7.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import orjson

from streamkit.dialects.members.values import number_in, text_of
from streamkit.dialects.vocabulary.context_overflow import is_overflow
from streamkit.events import ErrorType, ProviderFailed

ERROR_BY_STATUS: Mapping[int, ErrorType] = {
    400: "invalid_request",
    401: "auth",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "timeout",
    413: "too_large",
    422: "invalid_request",
    424: "server",  # Bedrock: the model failed
    425: "unavailable",
    429: "rate_limit",
    500: "server",
    503: "unavailable",
    504: "timeout",
    522: "timeout",  # Cloudflare, about the server behind it; so is the next
    524: "timeout",
    529: "unavailable",
}
#: Codes of failures between streamkit and a provider: a broken stream, a redirect, a refused key. They get gateway statuses
#: (RFC 9110 §15.6.3, §15.6.5).
BROKEN: Final = "stream_broken"
REDIRECTED: Final = "upstream_redirected"
REFUSED_KEY: Final = "upstream_credentials"
TRUNCATED: Final = "stream_truncated"  #: the code of the failure for a stream that ended before its completion point


def gateway_status(failed: ProviderFailed) -> int | None:
    """Return the status of a failure to reach a provider or to get its response; None for any other failure."""
    if failed.vendor or failed.code not in {BROKEN, REDIRECTED, REFUSED_KEY}:
        return None
    return {"server": 502, "timeout": 504}.get(failed.type)


# -- where an error is -------------------------------------------------------------------------------------------------


def _itself(value: Any) -> Any:
    return value


def _inside(value: Any) -> Any:
    return value.get("error") if isinstance(value, dict) else None


def _of_choices(choices: Any) -> Any:
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            for holder in (choice, choice.get("delta"), choice.get("message")):
                if says_error(error := _inside(holder)):
                    return error
    return None


def _unless_success(value: Any) -> Any:
    return value if isinstance(value, dict) and not is_success(value.get("status_code")) else None


#: Members that may contain an error. The function returns the error in the member's value, which ``says_error`` then checks.
FORMS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "error": _itself,
    "errors": _itself,  # Cloudflare, GraphQL
    "fault": _itself,  # Apigee
    "Error": _itself,  # AWS, Tencent
    "ErrorMsg": _itself,  # Tencent
    "err": _itself,
    "exception": _itself,
    "failure": _itself,
    "choices": _of_choices,  # OpenRouter
    "x_groq": _inside,
    "base_resp": _unless_success,  # MiniMax has it in each successful chunk, too
}
#: Members of a payload that is itself an error: codes (``CODES``; Baidu's 0 means success), and texts (``TEXTS``).
CODES: Final = ("error_code", "errorCode", "errcode", "errCode", "err_code")
TEXTS: Final = (
    "error_message", "error_msg", "errorMessage", "errorMsg", "errmsg", "errMsg", "err_msg", "originalMessage",
)  # fmt: skip
#: Members that may contain or show an error. A payload without any of them has no error.
ERROR_MEMBERS: Final = frozenset({*FORMS, *CODES, *TEXTS, "success"})
#: Codes and messages that mean success, in lower case.
SUCCESS: Final = frozenset({"200", "ok", "success", "succeeded", "false", "null", "none"})


def error_in(payload: dict[str, Any]) -> Any:
    """Return the error of a payload, without the members that are not about the error; None if there is no error."""
    present = ERROR_MEMBERS.intersection(payload)
    if not present or not ("success" in present or any(map(payload.get, present))):
        return None
    for name, find in FORMS.items():
        if name in payload and says_error(error := find(payload[name])):
            if type(error) in {bool, int, str} and error_message(payload, ("message", "msg")) is not None:
                break  # `{"error": "Bad Request", "message": …}`: the payload itself is the error
            return error
    else:
        if not _fails(payload):
            return None
    return members_of_error(payload)


def members_of_error(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a payload that are about its error."""
    return {name: value for name, value in payload.items() if name in _OF_ERRORS}


def _fails(payload: dict[str, Any]) -> bool:
    """Return whether members of the payload itself mark it as an error."""
    codes = [payload[name] for name in CODES if payload.get(name) is not None]
    if codes:
        return not all(map(is_success, codes))
    if payload.get("success") is False:
        return error_message(payload) is not None
    return any(not is_success(text_of(payload.get(name))) for name in TEXTS)


def says_error(value: Any) -> bool:
    """Return whether the value of an error member is an error. Null, false, 0, blank and empty values are not."""
    if isinstance(value, list):
        return any(map(says_error, value))
    if isinstance(value, dict):
        message = text_of(value.get("message", value.get("msg")))
        if message is not None and is_success(message) and is_success(value.get("code")):
            return False
        return any(not is_success(inner) and inner is not True for inner in value.values())
    return not is_success(value)


def is_success(code: Any) -> bool:
    """Return whether a code or message means success: absent, 0, a successful HTTP status, or a word for success."""
    if isinstance(code, str):
        text = code.strip().lower()
        return text in SUCCESS or not text.strip("0")
    if isinstance(code, int | float):
        return not code or 200 <= code < 300
    return not code


#: Matches the type or name of an error by its end.
_ERROR_WORD: Final = re.compile(
    r"(?:error|exception|fault|exceeded|denied|unavailable|overloaded|timeout|quota)$", re.IGNORECASE
)


def is_bare_error(payload: dict[str, Any]) -> bool:
    """Return whether an object of no dialect is an error without an envelope.

    It is one if ``object`` or ``type`` is ``error``, or if it has a message and either an HTTP status or a type that
    ends like an error's. Without a type, one of these next to the message is enough: another name of the error, ``status:
    error``, or a code that is not success (a word, or a number that is negative or at least 400). Without choices, FastAPI's
    ``detail`` is enough.
    """
    if "error" in (payload.get("object"), payload.get("type")):
        return True
    message = error_message(payload, MESSAGES)
    if message is None or is_success(message):
        return payload.keys() == {"detail"}
    kind = payload.get("type")
    if kind is not None or http_status(payload) is not None:
        return http_status(payload) is not None or (isinstance(kind, str) and _ERROR_WORD.search(kind) is not None)
    named = any(_ERROR_WORD.search(text_of(payload.get(name)) or "") for name in ("__type", "name"))
    if named or text_of(payload.get("error_type")) or payload.get("status") in ("error", "fail", "failed", "failure"):
        return True
    if "detail" in payload and not payload.get("choices"):
        return True
    code = next((payload[name] for name in ("code", "Code", "status_code") if payload.get(name) is not None), None)
    number = number_in(code)
    return not is_success(code) and isinstance(code, str | int) and (number is None or number < 0 or number >= 400)


#: Members in which queues, gateways, Tencent and iFlytek wrap the payload of another server.
WRAPPERS: Final = ("data", "response", "result", "body", "Response", "header")


def wrapped_error(payload: dict[str, Any]) -> dict[str, Any] | None:
    """Return the error that a payload wraps; None if there is none, or if the payload has a type or choices."""
    if "type" in payload or payload.get("choices"):
        return None
    inner = (payload.get(name) for name in WRAPPERS)
    found = (each for each in inner if isinstance(each, dict))
    return next((each for each in found if error_in(each) is not None or is_bare_error(each)), None)


# -- what an error means ------------------------------------------------------------------------------------------------

#: Members with the message of an error, the most informative first.
MESSAGES: Final = (
    "message", "Message", "msg", "Msg", *TEXTS[:-1], "status_msg", "faultstring", TEXTS[-1], "description",
    "error_description", "detail",
)  # fmt: skip
#: Members in which an error wraps another error.
_ENVELOPES: Final = tuple(name for name in FORMS if name not in {"choices", "x_groq"})
TELLING: Final = (*MESSAGES, *_ENVELOPES, "title")
#: Members that may have the code of an error (``_CODE_NAMES``) or an HTTP status (``_STATUS_NAMES``; the upstream's first).
_CODE_NAMES: Final = ("code", "Code", "status_code", *CODES, "errorcode")
_STATUS_NAMES: Final = (
    "originalStatusCode", "code", "status", "status_code", "statusCode", "http_code", "http_status", *CODES,
)  # fmt: skip
_OF_ERRORS: Final = frozenset({*TELLING, *_CODE_NAMES, *_STATUS_NAMES, "success"})
#: Members that do not show that a payload is more than an error, including members that payloads of every dialect have.
ENVELOPE: Final = ERROR_MEMBERS | _OF_ERRORS | {
    *("type", "object", "id", "created", "created_at", "model", "done", "param"),
    *("event_type", "event_id", "sequence_number"),
}  # fmt: skip
#: Numeric error codes of single vendors, by the member in which the vendor sends the code.
_NUMBERS: Final[Mapping[str, Mapping[str, ErrorType]]] = {
    "status_code": {  # MiniMax
        "1001": "timeout",
        **dict.fromkeys(("1002", "1039", "1041", "2056"), "rate_limit"),
        **dict.fromkeys(("1004", "2049"), "auth"),
        "1008": "billing",
        **dict.fromkeys(("1026", "1027", "1042", "2013"), "invalid_request"),
    },
    "error_code": {  # Baidu
        **dict.fromkeys(("4", "17", "18", "19", "336501", "336502"), "rate_limit"),
        "6": "permission",
        **dict.fromkeys(("13", "14", "100", "110", "111"), "auth"),
        **dict.fromkeys(("336001", "336002", "336003", "336006", "336007"), "invalid_request"),
        **dict.fromkeys(("2", "336100"), "unavailable"),
        "336103": "too_large",
    },
    "code": {  # Z.AI
        **dict.fromkeys(("1302", "1303", "1304", "1305"), "rate_limit"),
        "1113": "billing",
        "1211": "not_found",
        "1261": "too_large",
    },
}
#: Parts of other vendors' error words, in lower case without separators: ``Throttling.RateQuota`` of Alibaba,
#: ``policies.ratelimit.QuotaViolation`` of Apigee.
_WORDS: Final[Mapping[ErrorType, re.Pattern[str]]] = {
    "rate_limit": re.compile("throttl|ratelimit|ratequota|toomanyrequests|quotaviolation|spikearrest"),
    "billing": re.compile("arrearage|insufficientbalance|insufficientquota"),
    "auth": re.compile("apikey|unauthenticated|unauthorized|authentication|invalidaccesstoken"),
    "permission": re.compile("accessdenied|permissiondenied|(?<!extra)forbidden"),
    "not_found": re.compile("modelnotfound|modelnotexist"),
    "unavailable": re.compile("overloaded|serviceunavailable"),
    "timeout": re.compile("timeout|timedout|deadlineexceeded"),
    "invalid_request": re.compile("invalidparameter|invalidargument|badrequest|datainspectionfailed|validationfailed"),
}


def provider_failed(error: Any, vendor: str, types: Mapping[str, ErrorType]) -> ProviderFailed:
    """Read an error in any known envelope: an object, a nested object, plain text (dialects.md §1.4 lists them).

    ``types`` maps the dialect's error words to types of error.
    """
    raw = error
    levels = list(_levels(error))
    inner = levels[0] if levels else {}
    found = [(name, level[name]) for level in levels for name in _CODE_NAMES if level.get(name) is not None]
    member, code = found[0] if found else ("", None)
    native = text_of(inner.get("type")) or text_of(inner.get("status"))
    status = next((status for level in levels if (status := http_status(level)) is not None), None)
    if isinstance(error, dict) and isinstance(error.get("error"), dict | list):
        error = error["error"]
    message = message_in(error)
    if message is None:
        message = "an error without a message: " + orjson.dumps(error).decode()
    # the code first: OpenAI's type for a wrong key or an unknown model is `invalid_request_error`
    kind = types.get(str(code)) or types.get(native or "") or _NUMBERS.get(member, {}).get(str(code))
    kind = kind or _kind_of(code) or _kind_of(native) or (ERROR_BY_STATUS.get(status) if status else None)
    if kind is None and isinstance(inner.get("loc"), list):  # FastAPI, about a member of the request
        kind = "invalid_request"
    failed = ProviderFailed(
        kind or "server", message, native, None if code is None else str(code), status, raw=raw, vendor=vendor
    )
    if is_overflow(failed):
        failed.type = "too_large"
    return failed


def http_status(error: Mapping[str, Any]) -> int | None:
    """Return the status of a failure (400 to 599) in an object, written as a number or as digits; None if there is none."""
    numbers = [number_in(error.get(name)) for name in _STATUS_NAMES]
    return next((number for number in numbers if number is not None and 400 <= number <= 599), None)


def has_detail(error: ProviderFailed, vendor: str) -> bool:
    """Return whether another vendor's error has a type or status, which is lost in ``vendor``'s dialect."""
    return error.vendor != vendor and bool(error.native_type or error.http_status)


def error_message(error: Any, names: tuple[str, ...] = TELLING, depth: int = 4) -> str | None:
    """Return the text of an error, in any known shape: text, an object with a text, a list of these; None if there is none."""
    if isinstance(error, str):
        return text_of(error)
    if not depth:
        return None
    if isinstance(error, list):
        texts = [str(item) if type(item) is int else error_message(item, TELLING, depth - 1) for item in error[:10]]
        return "; ".join(filter(None, texts)) or None
    if isinstance(error, dict):
        for name in names:
            if text := error_message(error.get(name), TELLING, depth - 1):
                path = error.get("loc")
                return f"{'.'.join(map(str, path))}: {text}" if isinstance(path, list) and path else text
    return None


def message_in(error: Any) -> str | None:
    """Return the message of an error, together with its title or the upstream's original message."""
    if not isinstance(error, dict):
        return error_message(error) if isinstance(error, str | list) else orjson.dumps(error).decode()
    message, title, original = error_message(error), text_of(error.get("error")), text_of(error.get("originalMessage"))
    if message and title and title not in message:  # `{"error": "Bad Request", "message": …}`
        message = f"{title}: {message}"
    if message and original and original not in message:
        message = f"{message} ({original})"
    return message


def _levels(error: Any, depth: int = 4) -> Iterator[dict[str, Any]]:
    """Yield an error object and the errors that it wraps, the most informative first. In a list, only the first counts."""
    if isinstance(error, list):
        error = next((item for item in error if isinstance(item, dict)), None)
    if not isinstance(error, dict) or not depth:
        return
    for name in _ENVELOPES:
        yield from _levels(error.get(name), depth - 1)
    inner = [level for name in ("detail", "extensions") for level in _levels(error.get(name), depth - 1)]
    yield from (error, *inner) if error_message(error, MESSAGES[:-1]) else (*inner, error)


def _kind_of(word: Any) -> ErrorType | None:
    """Return the type of error that a word means, in any vendor's vocabulary; None if unknown."""
    if not isinstance(word, str):
        return None
    letters = "".join(filter(str.isalnum, word[:100])).lower()
    return next((kind for kind, pattern in _WORDS.items() if pattern.search(letters)), None)
