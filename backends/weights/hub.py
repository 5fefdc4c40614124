"""A hub of weights over HTTP: which files a repository has, and their bytes from any place on.

Over urllib, which is there in every Python: the hub's own library comes only with the engines, which may be installed
later, compares sizes and no digests, and fetches through a second protocol by native code.
"""

import email.utils
import http.client
import ssl
import time
from collections.abc import Callable, Iterator
from email.message import Message
from http.client import HTTPMessage, HTTPResponse
from typing import IO, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pydantic import BaseModel, Field, ValidationError

from backends.base import BackendError
from backends.weights.lock import Commit, Content, Sha256, Size

STALL_S = 30.0
"""A server that sends nothing for so long counts as gone."""

PACE_S, LEAST_BYTES = 60.0, 2**15
"""One that sends less than so many bytes in so many seconds is no better."""

BLOCK_BYTES = 2**20

MAX_LISTING_BYTES = 8 * 2**20

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Status codes after which the same request may well succeed."""

BEYOND = 416
"""Status code: the file has no bytes from there on."""


class Passing(Exception):
    """It did not work this time, and may the next. wait_s: how long the server wants to be left alone, if it says."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class BeyondEnd(Passing):
    """The server has no bytes from there on."""


class _Lfs(BaseModel):
    sha256: Sha256


class _File(BaseModel):
    name: str = Field(alias="rfilename")
    size: Size | None = None
    blob: Commit | None = Field(None, alias="blobId")
    lfs: _Lfs | None = None


class _Answer(BaseModel):
    sha: Commit
    siblings: list[_File]


class Hub:
    """One hub, as somebody who may have a token for it."""

    def __init__(self, endpoint: str, token: str = "", *, stall_s: float = STALL_S) -> None:
        """endpoint: address of the hub. token: sent to that address alone; empty for none. stall_s: see STALL_S."""
        self._endpoint = endpoint.rstrip("/")
        self._token = token
        self._stall_s = stall_s
        self._opener = build_opener(_Redirects())

    def listing(self, repository: str, revision: str = "main") -> tuple[str, dict[str, Content]]:
        """The commit of a revision, and its files by name. Names are the hub's: no path is ever to be made of one.

        Raises BackendError, Passing.
        """
        with self._open(f"/api/models/{repository}/revision/{quote(revision, safe='')}?blobs=true") as answer:
            text = bytearray()
            for block in blocks(answer):
                text += block
                if len(text) > MAX_LISTING_BYTES:
                    raise self._no_hub()
        try:
            said = _Answer.model_validate_json(text)
        except ValidationError:
            raise self._no_hub() from None
        return said.sha, {
            file.name: Content(size=file.size, sha256=file.lfs.sha256 if file.lfs else None, blob=_blob(file))
            for file in said.siblings
            if file.size is not None
        }

    def open(self, repository: str, commit: str, name: str, offset: int) -> HTTPResponse:
        """The bytes of a file, from `offset` on if the server goes along with that. Raises BackendError, Passing."""
        return self._open(f"/{repository}/resolve/{commit}/{quote(name)}", offset)

    def _open(self, path: str, offset: int = 0) -> HTTPResponse:
        headers = {"Accept-Encoding": "identity", "User-Agent": "uttera-tts"}
        if offset:
            headers["Range"] = f"bytes={offset}-"
        try:
            request = Request(self._endpoint + path, headers=headers)
            if self._token:
                request.add_unredirected_header("Authorization", f"Bearer {self._token}")
            return cast(HTTPResponse, self._opener.open(request, timeout=self._stall_s))
        except HTTPError as error:
            error.close()
            raise self._refused(error) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _broken(error) from None

    def _no_hub(self) -> BackendError:
        return BackendError(f"{self._endpoint} does not answer as a hub does.")

    def _refused(self, error: HTTPError) -> Exception:
        """What a status code means for a person."""
        host = urlsplit(error.url or self._endpoint).netloc or self._endpoint
        if error.code == BEYOND:
            return BeyondEnd(f"{host} has nothing more of this file")
        is_expired = error.code == 403 and host != urlsplit(self._endpoint).netloc  # the hub signs storage for minutes
        if error.code in PASSING or is_expired:
            return Passing(f"{host} answers {error.code}", _retry_after(error.headers))
        reasons = {
            401: "it wants a token, or the one in HF_TOKEN is none of its. Weights that anybody may have need none",
            403: "who asks may not have it. Its page may ask for an agreement first; then set HF_TOKEN",
            404: "there is no such file or repository. HF_ENDPOINT names the hub",
        }
        otherwise = "nothing that this program knows what to do about"
        said = reasons.get(error.code, otherwise if error.code >= 400 else "it leads in circles, or to no hub at all")
        return BackendError(f"{host} answers {error.code} to {urlsplit(error.url or '').path}: {said}.")


class _Redirects(HTTPRedirectHandler):
    """Follows to other hosts, but neither with the token nor from HTTPS to anything less."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The request that follows. Raises BackendError."""
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        fp.close()  # unread: there may be no end of it
        if new.scheme not in {"https", old.scheme}:
            raise BackendError(f"{old.netloc} redirects from {old.scheme} to {new.scheme}, which is not followed.")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        token = req.unredirected_hdrs.get("Authorization")
        if request and token and (old.scheme, old.netloc) == (new.scheme, new.netloc):
            request.add_unredirected_header("Authorization", token)
        return request


def blocks(answer: HTTPResponse, clock: Callable[[], float] = time.monotonic) -> Iterator[bytes]:
    """The bytes of an answer as they come. clock: tells seconds.

    Raises Passing where they stop, come too slowly, or end before the length that was announced.
    """
    left, since, came = answer.length, clock(), 0
    while left != 0 and (block := _read(answer, BLOCK_BYTES if left is None else min(BLOCK_BYTES, left))):
        yield block
        left = None if left is None else left - len(block)
        came += len(block)
        if clock() - since >= PACE_S:
            if came < LEAST_BYTES:
                raise Passing("The hub sends next to nothing")
            since, came = clock(), 0
    if left:
        raise Passing("The connection to the hub broke")


def _read(answer: HTTPResponse, most: int) -> bytes:
    try:
        return answer.read1(most)
    except (OSError, http.client.HTTPException) as error:
        raise _broken(error) from None


def _blob(file: _File) -> str | None:
    """git's name of a content; of what is kept outside of git it names a pointer."""
    return None if file.lfs else file.blob


def _broken(error: Exception) -> Exception:
    """What is said of a connection. A server that is not who it says it is, or an address that is none, do not pass."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return BackendError(f"The hub cannot prove who it is: {reason.verify_message}.")
    if isinstance(reason, (str, ValueError, http.client.InvalidURL)):
        return BackendError("The address of the hub, or one that it leads to, cannot be used.")
    if isinstance(reason, TimeoutError):
        return Passing("The hub sends nothing")
    said = reason.strerror if isinstance(reason, OSError) and reason.strerror else type(reason).__name__
    return Passing(f"The connection to the hub broke ({said})")


def _retry_after(headers: Message) -> float | None:
    """Seconds, from a count of them or a date."""
    value = headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
