"""What S3's refusals mean, and what a user does about each.

obstore gives an answer as text. The rule: of that text the status and the code are shown and
nothing else, as S3 repeats what was signed, with the session's token in it.
"""

from __future__ import annotations

import re

_STATUS = re.compile(r"status code: (\d{3})([^:\n]*)")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_ACTUAL_BYTES = re.compile(r"<ActualObjectSize>(\d{1,18})</ActualObjectSize>")
_METADATA = re.compile(r"Error performing \w+ \S+/latest/|https?://169\.254\.")
_WRONG_REGION = "incorrectly configured region"

_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"}
_STEPS = {
    "InvalidAccessKeyId": (
        "The server has no such access key, or its session has expired: renew or check {where}"
    ),
    "SignatureDoesNotMatch": "The secret key is not that of the access key: check {where}",
    "InvalidToken": "The session's token is not valid, or not any more: renew {where}",
    "InvalidTokenId": "The session's token is not valid, or not any more: renew {where}",
    "RequestTimeTooSkewed": "The clock of this machine is wrong: set it, then try again",
}
_WHERE = "what storage.* gives, the AWS_* variables or the profile, then try again"
_PERMISSIONS = {
    "read": "s3:GetObject",
    "listed": "s3:ListBucket",
    "written": "s3:PutObject",
    "deleted": "s3:DeleteObject",
}
"""What a call needs, by what it would have done."""


def status_of(exc: Exception) -> int | None:
    """Give the status of the answer; None where there was none."""
    found = _STATUS.search(str(exc))
    return int(found[1]) if found else None


def code_of(exc: Exception) -> str:
    """Give S3's own code; empty where the answer had no body, as one to HEAD has none."""
    found = _CODE.search(str(exc))
    return found[1] if found else ""


def actual_bytes(exc: Exception) -> int | None:
    """Give the object's size out of a 416, a range behind its end; None where it is not said."""
    found = _ACTUAL_BYTES.search(str(exc))
    return int(found[1]) if found else None


def never_connected(exc: Exception) -> bool:
    """Tell that no connection was made, so that no request was sent."""
    return "kind: Connect," in str(exc)


def has_no_credentials(exc: Exception) -> bool:
    """Tell that the client looked for a role of the machine and found none; nothing was sent."""
    return _METADATA.search(str(exc)) is not None


def is_elsewhere(exc: Exception) -> bool:
    """Tell that the bucket is in another region."""
    return _WRONG_REGION in str(exc)


def may_have_landed(exc: Exception) -> bool:
    """Tell whether the server may have taken the object in spite of this answer, or of none.

    Where many 409 came the path is there or will be, which only reading it back can tell.
    """
    if has_no_credentials(exc) or is_elsewhere(exc):
        return False
    status = status_of(exc)
    if status is None:
        return "BadScheme" not in str(exc) and not never_connected(exc)
    return status in (408, 409, 429) or (status >= 500 and status != 501)


def is_of_credentials(exc: Exception) -> bool:
    """Tell whether other keys might have been let in; such a call had no effect."""
    return status_of(exc) in (400, 401, 403)


def repeats_keys(exc: Exception) -> bool:
    """Tell whether the answer's body may hold a token, or what was signed with it."""
    return is_of_credentials(exc) and code_of(exc) not in ("", "AccessDenied")


def in_few_words(exc: Exception) -> str:
    """Say what the server said."""
    if has_no_credentials(exc):
        return "no credentials were found"
    found, code = _STATUS.search(str(exc)), code_of(exc)
    if found:
        return f"the server says {found[1]}{found[2]}" + (f" ({code})" if code else "")
    if never_connected(exc):
        return "no connection to the server"
    return str(exc).split("\n", 1)[0].rsplit(" - ", 1)[-1].rstrip(". ")


def next_step(exc: Exception, done: str, bucket: str) -> str:
    """Say what to do about a call that was not `done`: read, listed, written or deleted."""
    status, code = status_of(exc), code_of(exc)
    if has_no_credentials(exc):
        return "Set storage.access_key_id and storage.secret_access_key, or AWS_PROFILE"
    if is_elsewhere(exc) or status == 301:
        return f"The bucket {bucket} is in another region: set storage.region"
    if status == 404:
        return f"Check that there is a bucket {bucket} at that endpoint"
    if code in _EXPIRED:
        return f"The credentials have expired: renew {_WHERE}"
    if code in _STEPS:
        return _STEPS[code].format(where=_WHERE)
    if status == 403:
        return _missing_permission(done, bucket)
    if status in (400, 401):
        return "Check the credentials and their expiry, then try again"
    if status == 501:
        return "This server lacks what klog asks of S3; keep the log on one that has it"
    return "Check storage.endpoint and the network, then try again"


def _missing_permission(done: str, bucket: str) -> str:
    said = f"Let these credentials do {_PERMISSIONS[done]} there, or use others"
    if done == "read":
        said += (
            f"; without s3:ListBucket on the bucket {bucket}, S3 says the same of what is not there"
        )
    return said
