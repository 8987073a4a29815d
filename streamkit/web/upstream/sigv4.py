"""AWS Signature Version 4 from botocore. Importing this module imports botocore (the extra ``aws``).

The signature covers the host, the content type, the body and the time; other headers may still change. Credentials are found
as AWS's tools find them: environment, profile, SSO, container, instance. That may read files and ask servers, so none of this
may run in the event loop's thread. Note that botocore logs session tokens at log level debug.

Source: botocore 1.44 ``auth.SigV4Auth``, which signs boto3's requests.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from botocore.auth import SigV4Auth  # type: ignore[import-untyped]  # botocore has no types
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]  # botocore has no types
from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]  # botocore has no types
from botocore.session import Session  # type: ignore[import-untyped]  # botocore has no types

from streamkit.errors import SourceFailed


def signed(service: str, region: str, method: str, url: str, content_type: str, body: bytes) -> dict[str, str]:
    """Return the headers that sign a request to AWS, names in lower case. Raises SourceFailed without credentials."""
    try:
        credentials = _chain().get_frozen_credentials()
    except BotoCoreError as error:
        raise SourceFailed("the gateway could not get its AWS credentials") from error
    request = AWSRequest(method=method, url=url, data=body, headers={"content-type": content_type})
    SigV4Auth(credentials, service, region).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@cache
def _chain() -> Any:
    """Return AWS credentials, which renew themselves. Look them up once per process, since that may take network requests."""
    found = Session().get_credentials()
    if found is None:  # exceptions are not cached: credentials may appear later
        raise SourceFailed(
            "the gateway found no AWS credentials; set AWS_ACCESS_KEY_ID and its like, a profile or a role"
        )
    return found
