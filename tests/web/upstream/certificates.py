"""Certificates of an authority that nobody knows, in files and for servers."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme
from attrs import define, field


def encrypted(pem: bytes) -> bytes:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - it comes with trustme

    key = serialization.load_pem_private_key(pem, None)
    secrecy = serialization.BestAvailableEncryption(b"a-password")
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secrecy)


@define
class Certificates:
    """An authority that nobody knows, a server that it vouches for, and files for a client."""

    folder: Path
    authority: trustme.CA = field(factory=trustme.CA)

    def __attrs_post_init__(self) -> None:
        client, other = self.authority.issue_cert("client.test"), self.authority.issue_cert("other.test")
        key, chain = client.private_key_pem.bytes(), b"".join(blob.bytes() for blob in client.cert_chain_pems)
        for name, data in {
            "ca.pem": self.authority.cert_pem.bytes(),
            "client.pem": chain,
            "client.key": key,
            "both.pem": key + chain,
            "other.key": other.private_key_pem.bytes(),
            "encrypted.key": encrypted(key),
            "empty.pem": b"",
            "broken.pem": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        }.items():
            (self.folder / name).write_bytes(data)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def server(self, *, asks_client: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert("127.0.0.1", "upstream.test").configure_cert(context)
        if asks_client:
            context.verify_mode = ssl.CERT_REQUIRED
            self.authority.configure_trust(context)
        return context
