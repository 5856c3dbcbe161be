"""Sends the calls of a client, and repeats those that failed and may be repeated."""

import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
import zlib
from typing import Any, Callable, Dict, Generator, Iterator, List, Mapping, Optional, TypeVar, Union

from ._errors import ChannelTranscriptsError, NoResponseError, UnexpectedResponseError, error_class

T = TypeVar("T")
Values = Mapping[str, Union[str, int, None]]

#: A program that follows a job for hours meets restarts and rate limits. The pauses add up to three minutes.
RETRIES_WHILE_FOLLOWING = 7
#: A longer ``Retry-After`` is left to the caller.
_WAIT_SECONDS_MAX = 60
_NDJSON = "application/x-ndjson"
_JSON = "application/json"
_READ_BYTES = 65536
#: The service answers within its deadline of 45 seconds and writes meanwhile; a longer silence is a lost connection.
TIMEOUT_SECONDS = 120.0


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """``urllib`` would send the key to the address of a redirect, whatever host it names."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Http:
    def __init__(
        self, base_url: str, key: str, timeout: float, retries: int, sleep: Callable[[float], None]
    ) -> None:
        if not re.fullmatch(r"https?://[^/@?#\s]+(/[^@?#\s]*)?", base_url):
            # A key in the wrong place, or a password, is not shown.
            shown = " without a user and password" if re.search("ctk_|@", base_url) else f", but is {base_url!r}"
            raise ValueError(f"base_url must be a URL such as https://transcripts.example.com{shown}.")
        if not key:
            raise ValueError("key is empty: pass an API key of your organization.")
        if not re.fullmatch(r"[\x21-\x7e]+", key):
            raise ValueError("key contains a space, a line break or no ASCII: trim it.")
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._timeout = timeout
        self._retries = retries
        self.sleep = sleep
        self._opener = urllib.request.build_opener(_NoRedirects)

    def json(self, method: str, path: str, **options: Any) -> Any:
        """Calls an operation and returns the parsed body; None when there is none."""

        def read(response: Any, call: str) -> Any:
            if response.status == 204:
                return None
            _expect(response, call, _JSON)
            return json.loads(b"".join(_chunks(response)))

        return self._send(method, path, read, **options)

    def text(self, method: str, path: str, **options: Any) -> str:
        return self._send(method, path, lambda response, _: b"".join(_chunks(response)).decode(), **options)

    def lines(
        self, method: str, path: str, *, has_summary: bool = True, **options: Any
    ) -> Generator[Dict[str, Any], None, None]:
        """Yields the lines of an NDJSON response as they arrive. A response without its summary, if it has one, raises."""

        def read(response: Any, call: str) -> Any:
            try:
                _expect(response, call, _NDJSON)
            except ChannelTranscriptsError:
                response.close()
                raise
            return response

        response = self._send(method, path, read, accept=_NDJSON, keep_open=True, **options)
        with response:
            yield from _guarded(f"{method} {response.url}", _lines(response, has_summary))

    def page(self, path: str, query: Values) -> List[Dict[str, Any]]:
        """Reads an NDJSON response to its end before it returns, so that a repeated read repeats no entry."""

        def read(response: Any, call: str) -> List[Dict[str, Any]]:
            _expect(response, call, _NDJSON)
            return list(_lines(response))

        return self._send("GET", path, read, query=query, accept=_NDJSON, retries=RETRIES_WHILE_FOLLOWING)

    def items(self, path: str, name: str, query: Values) -> Iterator[Any]:
        """Yields the items of all pages."""
        after: Optional[str] = None
        while True:
            page = self.json("GET", path, query={**query, "after": after})
            yield from page[name]
            after = page["next"]
            if after is None:
                return

    def _send(
        self,
        method: str,
        path: str,
        read: Callable[[Any, str], T],
        *,
        query: Optional[Values] = None,
        body: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None,
        accept: Optional[str] = None,
        charged: bool = False,
        retries: Optional[int] = None,
        keep_open: bool = False,
    ) -> T:
        given = {name: str(value) for name, value in (query or {}).items() if value is not None}
        url = self._base_url + path + ("?" + urllib.parse.urlencode(given) if given else "")
        call = f"{method} {url}"
        sent = {"Accept-Encoding": "gzip", "User-Agent": "channel-transcripts-python", **(headers or {})}
        if accept is not None:
            sent["Accept"] = accept
        data = None
        if body is not None:
            data = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
            sent["Content-Type"] = _JSON
        safe = (method == "GET" and not charged) or "Idempotency-Key" in sent
        attempts = 1 + (self._retries if retries is None else retries)
        for attempt in range(1, attempts + 1):
            request = urllib.request.Request(url, data, sent, method=method)
            request.add_unredirected_header("Authorization", f"Bearer {self._key}")
            try:
                return self._attempt(request, call, read, keep_open)
            except ChannelTranscriptsError as error:
                wait = error.retry_after or 0
                if attempt == attempts or wait > _WAIT_SECONDS_MAX or not _may_be_repeated(error, safe):
                    raise
            # `Retry-After` is a lower bound: a restart can take longer.
            self.sleep(max(wait, min(_WAIT_SECONDS_MAX, 2**attempt)))
        raise AssertionError("The last attempt returns or raises.")

    def _attempt(
        self, request: urllib.request.Request, call: str, read: Callable[[Any, str], T], keep_open: bool
    ) -> T:
        try:
            response = self._opener.open(request, timeout=self._timeout)
            if keep_open:
                return read(response, call)
            with response:
                return read(response, call)
        except urllib.error.HTTPError as error:
            refused = _error_of(call, error, self._base_url)
        except (OSError, http.client.HTTPException, EOFError, ValueError, zlib.error) as error:
            raise _no_response(call, error) from error
        raise refused


def quoted(reference: str) -> str:
    """A reference of a caller as one part of a path."""
    return urllib.parse.quote(reference, safe="")


def _may_be_repeated(error: ChannelTranscriptsError, safe: bool) -> bool:
    """A call that the service itself refused has cost nothing; a lost answer may belong to one that is charged."""
    unanswered = isinstance(error, (UnexpectedResponseError, NoResponseError))
    return error.retryable and (safe or not unanswered)


def _expect(response: Any, call: str, media_type: str) -> None:
    if not str(response.headers.get("Content-Type", "")).startswith(media_type):
        raise _unexpected(call, response.status, response.headers)


def _chunks(response: Any) -> Iterator[bytes]:
    """The body as it arrives, decompressed. Raises EOFError when it was cut off."""
    packed = response.headers.get("Content-Encoding") == "gzip"
    length = response.headers.get("Content-Length")
    missing = int(length) if length is not None else None
    decoder = None
    while missing != 0:
        data = response.read1(_READ_BYTES)
        if not data:
            break
        if missing is not None:
            missing -= len(data)
        while packed and data:
            decoder = decoder or zlib.decompressobj(31)
            yield decoder.decompress(data)
            data = decoder.unused_data
            if decoder.eof:
                decoder = None
        if data:
            yield data
    if missing or decoder is not None:
        raise EOFError("the response was cut off")


def _lines(response: Any, has_summary: bool = True) -> Iterator[Dict[str, Any]]:
    """The lines of an NDJSON body. Documents have no summary; without the one of others the body was cut off."""
    rest = b""
    ended = not has_summary
    for chunk in _chunks(response):
        *complete, rest = (rest + chunk).split(b"\n")
        for line in complete:
            if line.strip():
                value = json.loads(line)
                if not isinstance(value, dict):
                    raise ValueError("a line is no JSON object")
                ended = not has_summary or value.get("type") == "summary"
                yield value
    if rest.strip() or not ended:
        raise EOFError("the response ended before its summary")


def _guarded(call: str, values: Iterator[T]) -> Iterator[T]:
    while True:
        try:
            value = next(values)
        except StopIteration:
            return
        except (OSError, http.client.HTTPException, EOFError, ValueError, zlib.error) as error:
            raise _no_response(call, error) from error
        yield value


def _no_response(call: str, error: Exception) -> NoResponseError:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return NoResponseError(f"{call}: {reason or type(error).__name__}", retryable=True)


def _seconds(headers: Any) -> Optional[float]:
    given = headers.get("Retry-After", "")
    return float(given) if re.fullmatch("[0-9]{1,9}", given) else None


def _unexpected(call: str, status: int, headers: Any) -> UnexpectedResponseError:
    hint = "Check the base URL."
    if 300 <= status < 400:
        hint = f"It redirects to {headers.get('Location')!r}, which is not followed: use the final URL as the base URL."
    return UnexpectedResponseError(
        f"The response to {call} (status {status}) is not from this service. {hint}",
        status=status,
        retryable=status == 429 or status >= 500,
        retry_after=_seconds(headers),
        request_id=headers.get("X-Request-Id"),
    )


def _error_of(call: str, response: urllib.error.HTTPError, base_url: str) -> ChannelTranscriptsError:
    """Converts the response of a refused call."""
    fields: Dict[str, Any] = {}
    with response:
        try:
            fields = dict(json.loads(b"".join(_chunks(response)))["error"])
        except (OSError, http.client.HTTPException, EOFError, ValueError, TypeError, KeyError, zlib.error):
            pass
    code, message = fields.pop("code", None), fields.pop("message", None)
    if not isinstance(code, str) or not isinstance(message, str):
        return _unexpected(call, response.code, response.headers)
    docs = fields.pop("docs", None)
    return error_class(code)(
        message,
        code=code,
        status=response.code,
        retryable=fields.pop("retryable", False) is True,
        retry_after=fields.pop("retryAfterSeconds", None) or _seconds(response.headers),
        request_id=fields.pop("requestId", None),
        docs=None if docs is None else base_url + str(docs),
        fields=fields,
    )
