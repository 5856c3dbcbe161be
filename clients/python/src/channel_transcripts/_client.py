"""The client of the service."""

import time
from contextlib import closing
from typing import Any, Callable, Dict, Iterable, Iterator, Literal, Mapping, Optional, Union, cast, overload

from ._documents import Form, documents_of
from ._http import TIMEOUT_SECONDS, Http, Values, quoted
from ._jobs import Jobs, Subscriptions, follow
from ._options import joined, texts_of
from ._types import (
    ChannelName,
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
    TextFormat,
    Usage,
    VideosTranscripts,
    VideoTranscript,
)

#: The length of a document.
_CHUNK_SECONDS = 60


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
        #: Archive jobs: all uploads of a channel.
        self.jobs = Jobs(self._http)
        #: Subscriptions: each new upload of a channel.
        self.subscriptions = Subscriptions(self._http)

    def channel(
        self,
        channel: str,
        *,
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
        since: Optional[str] = None,
    ) -> ChannelTranscripts:
        """Returns the transcripts of a channel's newest uploads."""
        query = _list_query(limit, kinds, since, texts_of(languages, match, include, chunk_seconds))
        path = f"/channels/{quoted(channel)}/transcripts"
        return cast(ChannelTranscripts, self._http.json("GET", path, query=query, charged=True))

    def channel_events(
        self,
        channel: str,
        *,
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
        since: Optional[str] = None,
    ) -> Iterator[Event]:
        """Yields the same as events, each as soon as it is available. Leaving the loop cancels the call."""
        query = _list_query(limit, kinds, since, texts_of(languages, match, include, chunk_seconds))
        return self._events("GET", f"/channels/{quoted(channel)}/transcripts", query=query)

    def playlist(
        self,
        playlist: str,
        *,
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
    ) -> PlaylistTranscripts:
        """Returns the transcripts of a playlist's first videos."""
        query = _list_query(limit, kinds, None, texts_of(languages, match, include, chunk_seconds))
        path = f"/playlists/{quoted(playlist)}/transcripts"
        return cast(PlaylistTranscripts, self._http.json("GET", path, query=query, charged=True))

    def playlist_events(
        self,
        playlist: str,
        *,
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
    ) -> Iterator[Event]:
        """Yields the same as events."""
        query = _list_query(limit, kinds, None, texts_of(languages, match, include, chunk_seconds))
        return self._events("GET", f"/playlists/{quoted(playlist)}/transcripts", query=query)

    def videos(
        self,
        videos: Iterable[str],
        *,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
    ) -> VideosTranscripts:
        """Returns the transcripts of up to 100 videos, in their order."""
        body = {"videos": list(videos), **texts_of(languages, match, include, chunk_seconds)}
        return cast(VideosTranscripts, self._http.json("POST", "/transcripts", body=body))

    def videos_events(
        self,
        videos: Iterable[str],
        *,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
    ) -> Iterator[Event]:
        """Yields the same as events."""
        body = {"videos": list(videos), **texts_of(languages, match, include, chunk_seconds)}
        return self._events("POST", "/transcripts", body=body)

    def video(
        self,
        video: str,
        *,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
    ) -> VideoTranscript:
        """Returns the transcript of one video. Also raises when the video has none."""
        query = texts_of(languages, match, include, chunk_seconds)
        path = f"/videos/{quoted(video)}/transcript"
        return cast(VideoTranscript, self._http.json("GET", path, query=query, charged=True))

    def video_as(
        self,
        format: TextFormat,
        video: str,
        *,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        include: Optional[Iterable[Includable]] = None,
        chunk_seconds: Optional[int] = None,
    ) -> str:
        """Returns the transcript of one video as text, subtitles or Markdown."""
        query = {"format": format, **texts_of(languages, match, include, chunk_seconds)}
        return self._http.text("GET", f"/videos/{quoted(video)}/transcript", query=query, charged=True)

    def uploads(
        self,
        channel: str,
        *,
        limit: Optional[int] = None,
        kinds: Optional[Iterable[Kind]] = None,
        since: Optional[str] = None,
    ) -> ChannelUploads:
        """Lists a channel's newest uploads without their transcripts, which costs no quota."""
        query = _list_query(limit, kinds, since, {})
        return cast(ChannelUploads, self._http.json("GET", f"/channels/{quoted(channel)}/uploads", query=query))

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

    @overload
    def documents(
        self,
        form: Literal["dict"] = "dict",
        *,
        channel: Optional[str] = None,
        playlist: Optional[str] = None,
        videos: Optional[Iterable[str]] = None,
        job: Optional[str] = None,
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        chunk_seconds: int = _CHUNK_SECONDS,
        kinds: Optional[Iterable[Kind]] = None,
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
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        chunk_seconds: int = _CHUNK_SECONDS,
        kinds: Optional[Iterable[Kind]] = None,
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
        limit: Optional[int] = None,
        languages: Optional[Iterable[str]] = None,
        match: Optional[Match] = None,
        chunk_seconds: int = _CHUNK_SECONDS,
        kinds: Optional[Iterable[Kind]] = None,
        since: Optional[str] = None,
    ) -> Iterator[Any]:
        """
        Yields the transcripts of one of `channel`, `playlist`, `videos` and `job` as documents of about a minute, as they
        become available: dicts, or with the form "langchain" or "llama_index" the documents of that package. A video without
        a transcript is a dict `{"id", "error"}`. Options other than `chunk_seconds` are for a call; a job has its own.
        """
        texts = texts_of(languages, match, ["chapters"], chunk_seconds)
        sources = {"channel": channel, "playlist": playlist, "videos": videos, "job": job}
        given = [name for name, value in sources.items() if value is not None]
        if len(given) != 1:
            raise TypeError(f"Pass exactly one of channel, playlist, videos and job, not {given or 'none'}.")
        if job is not None:
            return self._documents_of_job(job, form, chunk_seconds)
        if videos is not None:
            events = self._events("POST", "/transcripts", body={"videos": list(videos), **texts})
        else:
            kind, id = ("channels", channel) if channel is not None else ("playlists", playlist)
            query = _list_query(limit, kinds, since, texts)
            events = self._events("GET", f"/{kind}/{quoted(str(id))}/transcripts", query=query)
        return _documents_of_events(events, form)

    def _documents_of_job(self, job: str, form: Form, chunk_seconds: int) -> Iterator[Any]:
        created = self.jobs.get(job)
        of_job = None if created["request"].get("chunkSeconds") else chunk_seconds
        for entry in self.jobs.results(job):
            yield from documents_of(entry, form, chunk_seconds=of_job, channel=created["channel"])

    def _events(self, method: str, path: str, **options: Any) -> Iterator[Event]:
        with closing(self._http.lines(method, path, charged=True, **options)) as lines:
            for line in lines:
                # Later versions of the service may add types.
                if line.get("type") in ("channel", "playlist", "result", "summary"):
                    yield cast(Event, line)

    def call(
        self, method: str, path: str, query: Optional[Values] = None, body: Optional[Mapping[str, Any]] = None
    ) -> Any:
        """Calls any operation of the OpenAPI document, such as `call("GET", "/audit")`, and returns the parsed body."""
        return self._http.json(method, path, query=query, body=body, charged=True)


def _list_query(
    limit: Optional[int], kinds: Optional[Iterable[Kind]], since: Optional[str], texts: Dict[str, Any]
) -> Dict[str, Any]:
    return {"limit": limit, "kinds": joined(kinds), "since": since, **texts}


def _documents_of_events(events: Iterator[Event], form: Form) -> Iterator[Any]:
    channel: Optional[ChannelName] = None
    for event in events:
        if event["type"] == "channel":
            channel = event["channel"]
        elif event["type"] == "result":
            yield from documents_of(event["result"], form, channel=channel)
