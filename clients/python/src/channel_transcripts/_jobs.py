"""Archive jobs, subscriptions, and the feed."""

import math
import uuid
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union, cast

from ._http import RETRIES_WHILE_FOLLOWING, Http, quoted
from ._options import joined, texts_of
from ._types import (
    Cursor,
    FeedVideo,
    FollowedVideo,
    Includable,
    Job,
    JobVideoTranscript,
    Kind,
    Match,
    Tracks,
    Subscription,
)

#: The largest page of results.
_RESULTS_PER_PAGE = 100
#: For a canceled job whose last slice is still being stored.
_PAUSE_SECONDS_DEFAULT = 2
#: A check is followed by the fetching of what it found.
_AFTER_CHECK_SECONDS = 5
#: Pending uploads are being fetched, or are tried again between the checks.
_PENDING_SECONDS_MAX = 60
#: The next check can be brought forward, and clocks differ.
_PAUSE_SECONDS_MAX = 300


class Jobs:
    """Archive jobs: all uploads of a channel, a playlist, or up to 10,000 videos."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def create(
        self,
        channel: Optional[str] = None,
        *,
        playlist: Optional[str] = None,
        videos: Optional[Iterable[str]] = None,
        limit: Optional[int] = None,
        since: Optional[str] = None,
        on_quota: Optional[str] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        tracks: Optional[Tracks] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
        published_after: Optional[str] = None,
        kinds: Optional[Iterable[Kind]] = None,
        labels: Optional[Mapping[str, str]] = None,
        keep: Optional[bool] = None,
        idempotency_key: Optional[str] = None,
    ) -> Job:
        """Starts a job. `keep` keeps its transcripts in the library. The same `idempotency_key` and options give the same job; by default the key is a new one."""
        body = {
            "channel": channel,
            "playlist": playlist,
            "videos": None if videos is None else list(videos),
            "limit": limit,
            "since": since,
            "onQuota": on_quota,
            "labels": labels,
            "keep": keep,
            "kinds": joined(kinds),
            "publishedAfter": published_after,
            **texts_of(languages, match, tracks, include, chunk_seconds),
        }
        return cast(Job, self._http.json("POST", "/jobs", body=body, headers=_idempotent(idempotency_key)))

    def list(self, label: Optional[str] = None) -> Iterator[Job]:
        """Yields the organization's jobs, newest first. `label` is a pair such as "user:42"."""
        return cast(Iterator[Job], self._http.items("/jobs", "jobs", {"label": label}))

    def get(self, id: str) -> Job:
        return self._get(id, None)

    def change(self, id: str, **fields: Any) -> Job:
        """Changes fields by their names in the API, such as `keep=True`."""
        return cast(Job, self._http.json("PATCH", f"/jobs/{quoted(id)}", body=fields))

    def cancel(self, id: str) -> Job:
        return cast(Job, self._http.json("POST", f"/jobs/{quoted(id)}/cancel", body={}))

    def resume(self, id: str) -> Job:
        return cast(Job, self._http.json("POST", f"/jobs/{quoted(id)}/resume", body={}))

    def delete(self, id: str) -> None:
        self._http.json("DELETE", f"/jobs/{quoted(id)}")

    def wait_for(self, id: str, on_progress: Optional[Callable[[Job], None]] = None) -> Job:
        """Returns the job when it has finished: completed, canceled or failed."""
        while True:
            job = self._get(id, RETRIES_WHILE_FOLLOWING)
            if on_progress is not None:
                on_progress(job)
            if job["checkAgainSeconds"] is None:
                return job
            self._http.sleep(job["checkAgainSeconds"])

    def results(self, id: str, after: Optional[Cursor] = None) -> Iterator[JobVideoTranscript]:
        """
        Yields the entries of a job in the order in which they became final, also while it runs, to its end: each once, and
        none is missing. Each has its `cursor`, after which another loop goes on.
        """
        while True:
            entries, end = _page(self._http, f"/jobs/{quoted(id)}/results", {"after": after})
            yield from cast(List[JobVideoTranscript], entries)
            if end["next"] is None:
                return
            after = end["next"]
            if not entries:
                self._http.sleep(end["job"]["checkAgainSeconds"] or _PAUSE_SECONDS_DEFAULT)

    def _get(self, id: str, retries: Optional[int]) -> Job:
        return cast(Job, self._http.json("GET", f"/jobs/{quoted(id)}", retries=retries))


class Subscriptions:
    """Subscriptions: each new upload of a channel or a playlist, once. `Client.follow` reads one, `Client.feed` all of them."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def create(
        self,
        channel: Optional[str] = None,
        *,
        playlist: Optional[str] = None,
        check_minutes: Optional[int] = None,
        start: Optional[Union[int, str]] = None,
        labels: Optional[Mapping[str, str]] = None,
        keep: Optional[bool] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        tracks: Optional[Tracks] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
        idempotency_key: Optional[str] = None,
    ) -> Subscription:
        """
        Follows a channel or a playlist.

        `start`: what is delivered first: nothing ("now", the default), a number of the newest uploads, or those above the ID
        of a video. `keep` keeps the transcripts in the library.
        """
        body = {
            "channel": channel,
            "playlist": playlist,
            "checkMinutes": check_minutes,
            "start": start,
            "labels": labels,
            "keep": keep,
            "kinds": joined(kinds),
            **texts_of(languages, match, tracks, include, chunk_seconds),
        }
        headers = _idempotent(idempotency_key)
        return cast(Subscription, self._http.json("POST", "/subscriptions", body=body, headers=headers))

    def list(self, label: Optional[str] = None, channel: Optional[str] = None) -> Iterator[Subscription]:
        """Yields the organization's subscriptions, newest first. `label` is a pair such as "user:42"."""
        query = {"label": label, "channel": channel}
        return cast(Iterator[Subscription], self._http.items("/subscriptions", "subscriptions", query))

    def get(self, id: str) -> Subscription:
        return cast(Subscription, self._http.json("GET", f"/subscriptions/{quoted(id)}"))

    def change(self, id: str, **fields: Any) -> Subscription:
        """Changes fields by their names in the API, such as `checkMinutes=15` or `state="paused"`."""
        return cast(Subscription, self._http.json("PATCH", f"/subscriptions/{quoted(id)}", body=fields))

    def delete(self, id: str) -> None:
        self._http.json("DELETE", f"/subscriptions/{quoted(id)}")

    def check(self, id: str) -> Subscription:
        """Checks the channel or the playlist now, and tries the pending uploads again."""
        return cast(Subscription, self._http.json("POST", f"/subscriptions/{quoted(id)}/check", body={}))


def follow(http: Http, path: str, query: Mapping[str, Optional[str]], after: Optional[Cursor]) -> Iterator[FeedVideo]:
    """Yields the entries that follow a cursor, again and again. Between two reads it waits for what is new."""
    while True:
        entries, end = _page(http, path, {**query, "after": after})
        yield from cast(List[FeedVideo], entries)
        after = end["next"]
        if not entries:
            http.sleep(_pause_seconds(end.get("subscription") or end))


def _page(http: Http, path: str, query: Mapping[str, Optional[Cursor]]) -> Tuple[List[FollowedVideo], Dict[str, Any]]:
    """The entries of a page, each with what its line says of it, such as the cursor, and the line at its end."""
    *lines, end = http.page(path, {**query, "limit": _RESULTS_PER_PAGE})
    entries = [{**line, **line["result"]} for line in lines if line["type"] == "result"]
    for entry in entries:
        del entry["type"], entry["result"]
    return cast(List[FollowedVideo], entries), end


def _idempotent(key: Optional[str]) -> Dict[str, str]:
    return {"Idempotency-Key": key or str(uuid.uuid4())}


def _pause_seconds(end: Mapping[str, Any]) -> int:
    """The seconds until there can be something new."""
    next_check_at = end.get("nextCheckAt")
    pending = (end.get("summary") or {}).get("pending", 1)
    longest = _PENDING_SECONDS_MAX if pending > 0 else _PAUSE_SECONDS_MAX
    if next_check_at is None:
        return longest
    until = datetime.fromisoformat(next_check_at.replace("Z", "+00:00")) - datetime.now(timezone.utc)
    return min(longest, math.ceil(max(0.0, until.total_seconds())) + _AFTER_CHECK_SECONDS)
