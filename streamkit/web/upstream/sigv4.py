"""AWS Signature Version 4 by botocore, which is imported with this module: the extra ``aws``.

It signs the host, the type, the body and the time; all other headers may still change. Credentials are looked for as AWS's own
tools do: environment, profile, SSO, container, instance. That may read files and ask servers, so none of this is for the event
loop's own thread. Note that botocore logs a session's token where its logger is at the level of debugging.

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
    """The headers that sign a request to a service of AWS, names in lower case. Raises SourceFailed without credentials."""
    try:
        credentials = _chain().get_frozen_credentials()
    except BotoCoreError as error:
        raise SourceFailed("the gateway could not get its AWS credentials") from error
    request = AWSRequest(method=method, url=url, data=body, headers={"content-type": content_type})
    SigV4Auth(credentials, service, region).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@cache
def _chain() -> Any:
    """Credentials that renew themselves. Once a process: an instance's are fetched over the network."""
    found = Session().get_credentials()
    if found is None:  # as an exception it is not cached: credentials may come
        raise SourceFailed(
            "the gateway found no AWS credentials; set AWS_ACCESS_KEY_ID and its like, a profile or a role"
        )
    return found
