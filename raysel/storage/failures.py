"""Reasons for which a store could not be used, in plain words."""

from __future__ import annotations

import re

from raysel.storage.location import Location

_CREDENTIALS = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or add ?anonymous=true for a public bucket",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS to a key file, or add ?anonymous=true for a public bucket",
    "file": "check the permissions",
}
#: Parts of the messages of PyArrow's clients, and what they mean.
_NO_BUCKET = re.compile("NO_SUCH_BUCKET|specified bucket does not exist")
_DENIED = re.compile(
    "ACCESS_DENIED|INVALID_ACCESS_KEY_ID|INVALID_CLIENT_TOKEN|SIGNATURE_DOES_NOT_MATCH|UNRECOGNIZED_CLIENT|"
    "EXPIRED_TOKEN|HTTP status code: 40[13]|HTTP response code: 40[13]|PERMISSION_DENIED|UNAUTHENTICATED"
)
_NO_CREDENTIALS = re.compile("OAuth2 access token|default credentials")
_NO_NETWORK = re.compile("NETWORK_CONNECTION|UNAVAILABLE|curlCode: (6|7|28)|CURL error|REQUEST_TIMEOUT")
_OTHER_REGION = re.compile("PERMANENT_REDIRECT|HTTP response code: 301|AuthorizationHeaderMalformed")


def reason(error: Exception, location: Location) -> str:
    """Return why a file or folder could not be read or written, and what to do, without credentials."""
    text = str(error)
    if _NO_CREDENTIALS.search(text):
        return f"no credentials were found; {_CREDENTIALS[location.scheme]}"
    if _NO_BUCKET.search(text) or (location.scheme == "gs" and isinstance(error, FileNotFoundError)):
        return f"there is no bucket {location.bucket}; create it, or check the name"
    if _DENIED.search(text) or isinstance(error, PermissionError):
        return f"access is denied; {_CREDENTIALS[location.scheme]}"
    if _OTHER_REGION.search(text):
        return "the bucket is in another region; add ?region=REGION"
    if _NO_NETWORK.search(text):
        return "the store does not answer; check the network, and endpoint_override if it is a server of your own"
    for secret in location.secrets:
        text = text.replace(secret, "***")
    return " ".join(text.split())[:300] or type(error).__name__
