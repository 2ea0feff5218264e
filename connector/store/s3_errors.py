"""What S3's refusals mean, and what a user does about each.

obstore returns an answer as text. The rule: only its status and its code are shown, because S3
repeats in an answer what was signed, with the token of the session.
"""

from __future__ import annotations

import re

_STATUS = re.compile(r"status code: (\d{3})([^:\n]*)")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_OBJECT_BYTES = re.compile(r"<ActualObjectSize>(\d{1,18})</ActualObjectSize>")
_METADATA_SERVICE = re.compile(r"Error performing \w+ \S+/latest/|https?://169\.254\.")
"""The service of a machine that has the keys of its role."""
_TEMPORARY = (408, 409, 412, 425, 429)
"""Statuses of 4xx that a later request may not get."""
_OTHER_REGION = "incorrectly configured region"

_EXPIRED_CODES = {
    "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired",
}  # fmt: skip
_KEYS = "the keys in storage.*, the AWS_* variables or the profile"
_STEPS = {
    "InvalidAccessKeyId": (
        f"The server has no such access key, or its session has expired: renew or check {_KEYS}, "
        "then try again"
    ),
    "SignatureDoesNotMatch": (
        f"The secret key does not belong to the access key: check {_KEYS}, then try again"
    ),
    "InvalidToken": f"The token of the session is not valid: renew {_KEYS}, then try again",
    "InvalidTokenId": f"The token of the session is not valid: renew {_KEYS}, then try again",
    "RequestTimeTooSkewed": "The clock of this machine is wrong: set it, then try again",
}
_PERMISSIONS = {
    "read": "s3:GetObject",
    "listed": "s3:ListBucket",
    "written": "s3:PutObject",
    "deleted": "s3:DeleteObject",
}
"""The permission that an operation needs."""


def http_status(exc: Exception) -> int | None:
    """Return the HTTP status of the answer; None if there was no answer.

    Args:
        exc: The error that obstore raised.
    """
    match = _STATUS.search(str(exc))
    return int(match[1]) if match else None


def error_code(exc: Exception) -> str:
    """Return S3's code; "" if the answer had no body, such as an answer to HEAD.

    Args:
        exc: The error that obstore raised.
    """
    match = _CODE.search(str(exc))
    return match[1] if match else ""


def object_bytes(exc: Exception) -> int | None:
    """Return the size of an object from the answer to a range after its end, a 416.

    Args:
        exc: The error that obstore raised.

    Returns:
        None if the answer does not have the size.
    """
    match = _OBJECT_BYTES.search(str(exc))
    return int(match[1]) if match else None


def is_never_connected(exc: Exception) -> bool:
    """Return whether there was no connection, so that no request was sent.

    Args:
        exc: The error that obstore raised.
    """
    return "kind: Connect," in str(exc)


def _has_no_credentials(exc: Exception) -> bool:
    """Return whether the client found no keys, not even of a role; no request was sent."""
    return _METADATA_SERVICE.search(str(exc)) is not None


def _is_in_other_region(exc: Exception) -> bool:
    """Return whether the bucket is in another region than the client's."""
    return _OTHER_REGION in str(exc)


def may_have_landed(exc: Exception) -> bool:
    """Return whether a put may have created the object although it failed.

    After a number of answers 409 the object exists or will exist, which only a read can decide.

    Args:
        exc: The error that obstore raised.
    """
    if _has_no_credentials(exc) or _is_in_other_region(exc):
        return False
    status = http_status(exc)
    if status is None:
        return "BadScheme" not in str(exc) and not is_never_connected(exc)
    return status in (408, 409, 429) or (status >= 500 and status != 501)


def is_about_credentials(exc: Exception) -> bool:
    """Return whether other keys might have been accepted; the call had no effect.

    Args:
        exc: The error that obstore raised.
    """
    return http_status(exc) in (400, 401, 403)


def is_permanent(exc: Exception) -> bool:
    """Return whether the same call fails until somebody changes something.

    Args:
        exc: The error that obstore raised.
    """
    if _has_no_credentials(exc) or _is_in_other_region(exc):
        return True
    status = http_status(exc)
    if status is None or error_code(exc) == "RequestTimeout":  # Which is a 400.
        return False
    return status in (301, 501) or (400 <= status < 500 and status not in _TEMPORARY)


def may_repeat_keys(exc: Exception) -> bool:
    """Return whether the body of the answer may have a token, or the text that was signed with it.

    Args:
        exc: The error that obstore raised.
    """
    return is_about_credentials(exc) and error_code(exc) not in ("", "AccessDenied")


def short_message(exc: Exception) -> str:
    """Return the server's answer in a few words.

    Args:
        exc: The error that obstore raised.
    """
    if _has_no_credentials(exc):
        return "no credentials were found"
    match, code = _STATUS.search(str(exc)), error_code(exc)
    if match:
        return f"the server says {match[1]}{match[2]}" + (f" ({code})" if code else "")
    if is_never_connected(exc):
        return "no connection to the server"
    return str(exc).split("\n", 1)[0].rsplit(" - ", 1)[-1].rstrip(". ")


def next_step(exc: Exception, operation: str, bucket: str) -> str:
    """Return what to do about a call that failed.

    Args:
        exc: The error that obstore raised.
        operation: What would have been done: "read", "listed", "written" or "deleted".
        bucket: The bucket.
    """
    status, code = http_status(exc), error_code(exc)
    if _has_no_credentials(exc):
        return "Set storage.access_key_id and storage.secret_access_key, or AWS_PROFILE"
    if _is_in_other_region(exc) or status == 301:
        return f"The bucket {bucket} is in another region: set storage.region"
    if status == 404:
        return f"Check that there is a bucket {bucket} at that endpoint"
    if code in _EXPIRED_CODES:
        return f"The credentials have expired: renew {_KEYS}, then try again"
    if code in _STEPS:
        return _STEPS[code]
    if status == 403:
        return _missing_permission(operation, bucket)
    if status in (400, 401):
        return "Check the credentials and their expiry, then try again"
    if status == 501:
        return "This server lacks what klog asks of S3. Keep the log on a server that has it"
    return "Check storage.endpoint and the network, then try again"


def _missing_permission(operation: str, bucket: str) -> str:
    step = f"Give these credentials {_PERMISSIONS[operation]} there, or use others"
    if operation == "read":
        step += (
            f"; without s3:ListBucket on the bucket {bucket}, S3 gives the same answer for a "
            "missing object"
        )
    return step
