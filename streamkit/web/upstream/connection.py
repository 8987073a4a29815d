"""How connections to one upstream are opened: through which proxy, and with which certificates.

The options of aiohttp are made once, when the upstream is created, so that requests take no more time, and a
file that can't be used is reported at that point. The environment's proxies (``HTTPS_PROXY``) are not used. OpenSSL finds
the system's certificates, and follows ``SSL_CERT_FILE``.

A proxy is reached without TLS: for https it opens a tunnel (``CONNECT``), and sees neither requests nor keys. Its credentials
are sent in a header, not in its URL, because errors of aiohttp contain the URL.

Source: limits.md T5, T6; RFC 9110 §7.1, §9.3.6, §11.7.
"""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from attrs import field, frozen
from yarl import URL

from streamkit.errors import UsageError
from streamkit.text.quoting import quoted

_CERTIFICATE: Final = (b"-----BEGIN CERTIFICATE-----", b"-----BEGIN TRUSTED CERTIFICATE-----")
_PRIVATE_KEY: Final = (b"PRIVATE KEY-----",)  # the end of several kinds of first lines
PROXY_FORM: Final = "write the URL of an HTTP proxy, such as http://proxy:3128"
PATH_CHARS: Final = 200  #: the most characters of a path in a message


@frozen(kw_only=True)
class ConnectionOptions:
    """The options of a request's connection, for aiohttp. Empty: aiohttp's defaults."""

    arguments: Mapping[str, Any] = field(factory=dict, repr=False)  #: ``proxy``, ``proxy_headers`` and ``ssl``
    #: More headers of a request. A proxy reads a request without TLS itself, so its credentials are there.
    headers: dict[str, str] = field(factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)  #: the proxy's password, as it is and as it is sent


def connection_options(
    base_url: str, *, proxy: str | None, ca_file: str | None, client_cert: str | None, client_key: str | None
) -> ConnectionOptions:
    """Return the options for connections to ``base_url``; the other arguments are fields of ``Upstream``.

    Reads the files. Raises UsageError for a value or a file that can't be used.
    """
    uses_tls = base_url.startswith("https://")
    for name, path in {"ca_file": ca_file, "client_cert": client_cert, "client_key": client_key}.items():
        if path is not None and not uses_tls:
            raise UsageError(f"{name}: leave it out, or let base_url begin with https://; http has no certificates")
    arguments: dict[str, Any] = {}
    headers: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    if ca_file is not None or client_cert is not None or client_key is not None:
        arguments["ssl"] = _tls(ca_file, client_cert, client_key)
    if proxy is not None:
        url = _proxy(proxy)
        arguments["proxy"] = url.with_user(None)
        if url.user is not None:
            encoded = b64encode(f"{url.user}:{url.password or ''}".encode()).decode()
            secrets = (url.password or url.user, encoded)
            credentials = {"proxy-authorization": f"Basic {encoded}"}
            if uses_tls:
                arguments["proxy_headers"] = credentials  # of the request that opens the tunnel
            else:
                headers = credentials
    return ConnectionOptions(arguments=arguments, headers=headers, secrets=secrets)


def _proxy(text: str) -> URL:
    """Return the URL of a proxy. Raises UsageError, whose message shows nothing of the text."""
    try:
        url = URL(text)
        is_valid = url.scheme == "http" and bool(url.host) and bool(url.port)
    except ValueError:
        is_valid = False
    if not is_valid:
        raise UsageError(f"proxy: {PROXY_FORM}; proxies that are reached by TLS or SOCKS are not supported")
    if url.path not in {"", "/"} or url.raw_query_string or url.raw_fragment:
        raise UsageError(f"proxy: leave out everything after the port; {PROXY_FORM}")
    if ":" in (url.user or ""):
        raise UsageError("proxy: the user must not contain a colon")
    return url


def _tls(ca_file: str | None, client_cert: str | None, client_key: str | None) -> ssl.SSLContext:
    """Return the TLS settings. Raises UsageError, whose message begins with the field and names its file."""
    if client_cert is None and client_key is not None:
        raise UsageError("client_key: needs client_cert, the file with the certificate of this key")
    if ca_file is not None:
        _look_for(_CERTIFICATE, "certificate", "ca_file", ca_file)
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (ssl.SSLError, OSError) as error:
        raise _unusable("ca_file", ca_file or "", error) from error
    context.set_alpn_protocols(["http/1.1"])  # as aiohttp's own context has
    if client_cert is not None:
        name, key = ("client_cert", client_cert) if client_key is None else ("client_key", client_key)
        _look_for(_CERTIFICATE, "certificate", "client_cert", client_cert)
        _look_for(_PRIVATE_KEY, "private key", name, key)

        def encrypted() -> NoReturn:  # without this function, OpenSSL would ask on the terminal
            raise UsageError(
                f"{name}: the key in {quoted(key, PATH_CHARS)} is encrypted; "
                "decrypt it by `openssl pkey -in FILE -out NEW_FILE`, and write the name of the new file"
            )

        try:
            context.load_cert_chain(client_cert, client_key, password=encrypted)
        except (ssl.SSLError, OSError) as error:
            if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
                raise UsageError(
                    f"{name}: the key in {quoted(key, PATH_CHARS)} is not the key of client_cert"
                ) from error
            raise _unusable("client_cert", client_cert, error) from error
    return context


def _look_for(beginnings: tuple[bytes, ...], what: str, name: str, path: str) -> None:
    """Raise UsageError if the file ``path`` of the field ``name`` can't be read, or has no PEM block of this kind."""
    if "-----BEGIN" in path:
        raise UsageError(f"{name}: write the path of a PEM file, not its content")
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise _unusable(name, path, error) from error
    if not any(beginning in data for beginning in beginnings):
        raise UsageError(f"{name}: {quoted(path, PATH_CHARS)} has no {what} in PEM form (-----BEGIN …)")


def _unusable(name: str, path: str, error: Exception) -> UsageError:
    if isinstance(error, ssl.SSLError):
        reason = error.reason or "its PEM form is damaged"
    else:
        reason = getattr(error, "strerror", None) or str(error)
    return UsageError(f"{name}: {quoted(path, PATH_CHARS)} can't be used: {reason}")
