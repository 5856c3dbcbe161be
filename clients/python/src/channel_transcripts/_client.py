"""The client of the service."""

import time
from contextlib import closing
from typing import Any, Callable, Dict, Iterable, Iterator, Literal, Mapping, Optional, Union, cast, overload

from ._documents import Form, in_form
from ._http import TIMEOUT_SECONDS, Http, Values, quoted
from ._jobs import Jobs, Subscriptions, follow
from ._library import Library, library_query
from ._options import joined, texts_of
from ._types import (
    ChannelTranscripts,
    ChannelUploads,
    Cursor,
    Document,
    Event,
    FailedDocument,
    FeedVideo,
    FollowedVideo,
    Includable,
    Kind,
    Match,
    PlaylistTranscripts,
    PlaylistVideos,
    SearchResult,
    Sort,
    TextFormat,
    Tracks,
    Usage,
    VideosTranscripts,
    VideoTranscript,
)

class Client:
    """
    A client of the service. It repeats calls that the service refused for a moment, and waits as long as the service asks.
    A charged call whose response was lost is not repeated. Every method raises ChannelTranscriptsError. Threads can share one.

    :param base_url: the URL of the service, such as `https://transcripts.example.com`
    :param key: an API key: `ctk_…`
    :param timeout: seconds of silence after which a connection counts as lost
    :param retries: how often a failed call is repeated, if it may be
    """

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = 2,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = Http(base_url, key, timeout, retries, sleep)
        #: Archive jobs: all uploads of a channel or a playlist.
        self.jobs = Jobs(self._http)
        #: Subscriptions: each new upload of a channel or a playlist.
        self.subscriptions = Subscriptions(self._http)
        #: What jobs and subscriptions with `keep` have kept.
        self.library = Library(self._http)

    def channel(
        self,
        channel: str,
        *,
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        tracks: Optional[Tracks] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
        published_after: Optional[str] = None,
        since: Optional[str] = None,
    ) -> ChannelTranscripts:
        """Returns the transcripts of a channel's newest uploads."""
        texts = texts_of(languages, match, tracks, include, chunk_seconds)
        query = _list_query(limit, kinds, published_after, since, texts)
        path = f"/channels/{quoted(channel)}/transcripts"
        return cast(ChannelTranscripts, self._http.json("GET", path, query=query, charged=True))

    def channel_events(
        self,
        channel: str,
        *,
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        tracks: Optional[Tracks] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
        published_after: Optional[str] = None,
        since: Optional[str] = None,
    ) -> Iterator[Event]:
        """Yields the same as events, each as soon as it is available. Leaving the loop cancels the call."""
        texts = texts_of(languages, match, tracks, include, chunk_seconds)
        query = _list_query(limit, kinds, published_after, since, texts)
        return self._events("GET", f"/channels/{quoted(channel)}/transcripts", query=query)

    def playlist(
        self,
        playlist: str,
        *,
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        tracks: Optional[Tracks] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
        published_after: Optional[str] = None,
    ) -> PlaylistTranscripts:
        """Returns the transcripts of a playlist's first videos."""
        texts = texts_of(languages, match, tracks, include, chunk_seconds)
        query = _list_query(limit, kinds, published_after, None, texts)
        path = f"/playlists/{quoted(playlist)}/transcripts"
        return cast(PlaylistTranscripts, self._http.json("GET", path, query=query, charged=True))

    def playlist_events(
        self,
        playlist: str,
        *,
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        tracks: Optional[Tracks] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
        published_after: Optional[str] = None,
    ) -> Iterator[Event]:
        """Yields the same as events."""
        texts = texts_of(languages, match, tracks, include, chunk_seconds)
        query = _list_query(limit, kinds, published_after, None, texts)
        return self._events("GET", f"/playlists/{quoted(playlist)}/transcripts", query=query)

    def videos(
        self,
        videos: Iterable[str],
        *,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        tracks: Optional[Tracks] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
    ) -> VideosTranscripts:
        """Returns the transcripts of up to 100 videos, in their order."""
        body = {"videos": list(videos), **texts_of(languages, match, tracks, include, chunk_seconds)}
        return cast(VideosTranscripts, self._http.json("POST", "/transcripts", body=body))

    def videos_events(
        self,
        videos: Iterable[str],
        *,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        tracks: Optional[Tracks] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
    ) -> Iterator[Event]:
        """Yields the same as events."""
        body = {"videos": list(videos), **texts_of(languages, match, tracks, include, chunk_seconds)}
        return self._events("POST", "/transcripts", body=body)

    def video(
        self,
        video: str,
        *,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        tracks: Optional[Tracks] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
    ) -> VideoTranscript:
        """Returns the transcript of one video. Also raises when the video has none."""
        query = texts_of(languages, match, tracks, include, chunk_seconds)
        path = f"/videos/{quoted(video)}/transcript"
        return cast(VideoTranscript, self._http.json("GET", path, query=query, charged=True))

    def video_as(
        self,
        format: TextFormat,
        video: str,
        *,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        tracks: Optional[Tracks] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
    ) -> str:
        """Returns the transcript of one video as text, subtitles or Markdown."""
        query = {"format": format, **texts_of(languages, match, tracks, include, chunk_seconds)}
        return self._http.text("GET", f"/videos/{quoted(video)}/transcript", query=query, charged=True)

    def uploads(
        self,
        channel: str,
        *,
        limit: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
        published_after: Optional[str] = None,
        since: Optional[str] = None,
    ) -> ChannelUploads:
        """Lists a channel's newest uploads without their transcripts, which costs no quota."""
        query = _list_query(limit, kinds, published_after, since, {})
        return cast(ChannelUploads, self._http.json("GET", f"/channels/{quoted(channel)}/uploads", query=query))

    def playlist_videos(
        self,
        playlist: str,
        *,
        limit: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
        published_after: Optional[str] = None,
    ) -> PlaylistVideos:
        """Lists a playlist's first videos without their transcripts, which costs no quota."""
        query = _list_query(limit, kinds, published_after, None, {})
        return cast(PlaylistVideos, self._http.json("GET", f"/playlists/{quoted(playlist)}/videos", query=query))

    def usage(self) -> Usage:
        """Returns the quota of the organization and its use."""
        return cast(Usage, self._http.json("GET", "/usage"))

    def follow(self, subscription: str, after: Optional[Cursor] = None) -> Iterator[FollowedVideo]:
        """
        Yields the entries of a subscription as they become final, each once, without an end. Store the `cursor` of an entry
        with what is made of it, and pass it as `after` to go on; without it the oldest stored entry comes first.
        """
        return follow(self._http, f"/subscriptions/{quoted(subscription)}/results", {}, after)

    def feed(
        self, after: Optional[Cursor] = None, *, label: Optional[str] = None, channel: Optional[str] = None
    ) -> Iterator[FeedVideo]:
        """Yields the entries of all subscriptions of the organization in one order, as `follow` does those of one."""
        return follow(self._http, "/feed", {"label": label, "channel": channel}, after)

    def search(
        self,
        q: str,
        *,
        channel: Optional[str] = None,
        label: Optional[str] = None,
        language: Optional[str] = None,
        published_after: Optional[str] = None,
        sort: Optional[Sort] = None,
    ) -> Iterator[SearchResult]:
        """
        Yields the passages of the library that a query finds, such as `"rising tide" harbour -ebb`. The next page is read
        when the loop needs it.
        """
        query = {"q": q, "sort": sort, **library_query(channel, label, language, published_after)}
        return cast(Iterator[SearchResult], self._http.items("/library/search", "results", query))

    @overload
    def documents(
        self,
        form: Literal["dict"] = "dict",
        *,
        channel: Optional[str] = None,
        playlist: Optional[str] = None,
        videos: Optional[Iterable[str]] = None,
        job: Optional[str] = None,
        subscription: Optional[str] = None,
        feed: bool = False,
        library: bool = False,
        after: Optional[Cursor] = None,
        label: Optional[str] = None,
        language: Optional[str] = None,
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        tracks: Optional[Tracks] = None,
        chunk_seconds: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
        published_after: Optional[str] = None,
        since: Optional[str] = None,
    ) -> Iterator[Union[Document, FailedDocument]]: ...

    @overload
    def documents(
        self,
        form: Form,
        *,
        channel: Optional[str] = None,
        playlist: Optional[str] = None,
        videos: Optional[Iterable[str]] = None,
        job: Optional[str] = None,
        subscription: Optional[str] = None,
        feed: bool = False,
        library: bool = False,
        after: Optional[Cursor] = None,
        label: Optional[str] = None,
        language: Optional[str] = None,
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        tracks: Optional[Tracks] = None,
        chunk_seconds: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
        published_after: Optional[str] = None,
        since: Optional[str] = None,
    ) -> Iterator[Any]: ...

    def documents(
        self,
        form: Form = "dict",
        *,
        channel: Optional[str] = None,
        playlist: Optional[str] = None,
        videos: Optional[Iterable[str]] = None,
        job: Optional[str] = None,
        subscription: Optional[str] = None,
        feed: bool = False,
        library: bool = False,
        after: Optional[Cursor] = None,
        label: Optional[str] = None,
        language: Optional[str] = None,
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        tracks: Optional[Tracks] = None,
        chunk_seconds: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
        published_after: Optional[str] = None,
        since: Optional[str] = None,
    ) -> Iterator[Any]:
        """
        Yields transcripts as documents of about a minute, as they become available: dicts, or with the form "langchain" or
        "llama_index" the documents of that package. A video without a transcript is a dict `{"id", "error"}`.

        Of one of `channel`, `playlist`, `videos`, `job` (when it has finished), `subscription`, `feed` and `library`. Of the
        last two `channel` and `label` name a part, and of the library `language` and `published_after`. Other options than
        `chunk_seconds` and `limit` are for a call. What is stored has its own, and begins after the cursor `after`, which the
        last dict of each video has.
        """
        sources: Dict[str, Any] = {"playlist": playlist, "videos": videos, "job": job, "subscription": subscription}
        sources.update(feed=feed or None, library=library or None)
        given = [name for name, value in sources.items() if value is not None]
        if channel is not None and not (feed or library):
            given.append("channel")
        if len(given) != 1:
            raise TypeError(f"Pass exactly one of channel, {', '.join(sources)}, not {given or 'none'}.")
        texts = {"as": "documents", **texts_of(languages, match, tracks, None, chunk_seconds)}
        stored = {"as": "documents", "chunkSeconds": chunk_seconds, "limit": limit, "after": after}
        if job is not None:
            lines = self._job_lines(job, stored)
        elif subscription is not None:
            lines = self._stored_lines(f"/subscriptions/{quoted(subscription)}/results", stored)
        elif feed:
            lines = self._stored_lines("/feed", {**stored, "channel": channel, "label": label})
        elif library:
            part = library_query(channel, label, language, published_after)
            lines = self._stored_lines("/library/videos", {**stored, **part})
        elif videos is not None:
            lines = self._lines("POST", "/transcripts", body={"videos": list(videos), **texts}, has_summary=False)
        else:
            kind, id = ("channels", channel) if channel is not None else ("playlists", playlist)
            query = _list_query(limit, kinds, published_after, since, texts)
            lines = self._lines("GET", f"/{kind}/{quoted(str(id))}/transcripts", query=query, has_summary=False)
        return in_form(cast(Iterator[Union[Document, FailedDocument]], lines), form)

    def _job_lines(self, job: str, query: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
        self.jobs.wait_for(job)
        yield from self._stored_lines(f"/jobs/{quoted(job)}/results", query)

    def _stored_lines(self, path: str, query: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
        return self._lines("GET", path, charged=False, query=query, has_summary=False)

    def _events(self, method: str, path: str, **options: Any) -> Iterator[Event]:
        for line in self._lines(method, path, **options):
            # Later versions of the service may add types.
            if line.get("type") in ("channel", "playlist", "result", "summary"):
                yield cast(Event, line)

    def _lines(self, method: str, path: str, *, charged: bool = True, **options: Any) -> Iterator[Dict[str, Any]]:
        with closing(self._http.lines(method, path, charged=charged, **options)) as lines:
            yield from lines

    def call(
        self, method: str, path: str, query: Optional[Values] = None, body: Optional[Mapping[str, Any]] = None
    ) -> Any:
        """Calls any operation of the OpenAPI document, such as `call("GET", "/audit")`, and returns the parsed body."""
        return self._http.json(method, path, query=query, body=body, charged=True)


def _list_query(
    limit: Optional[int],
    kinds: Optional[Iterable[Kind]],
    published_after: Optional[str],
    since: Optional[str],
    texts: Dict[str, Any],
) -> Dict[str, Any]:
    return {"limit": limit, "kinds": joined(kinds), "publishedAfter": published_after, "since": since, **texts}
