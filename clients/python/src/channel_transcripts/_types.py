"""The bodies of responses. Later versions of the service may add fields."""

from typing import Any, Dict, Iterable, List, Literal, Optional, TypedDict, Union

#: An opaque text: store it as it is, and pass it back as `after`. Earlier versions have numbers.
Cursor = Union[str, int]
Languages = Iterable[str]
Match = Literal["all", "first"]
Tracks = Literal["any", "manual", "generated"]
Kind = Literal["video", "short", "live", "upcoming"]
Includable = Literal["description", "chapters", "tags"]
TextFormat = Literal["text", "srt", "vtt", "markdown"]
Sort = Literal["relevance", "newest"]
#: Whether transcripts are kept in the library; `full`: it has reached its limit.
Keep = Literal["off", "on", "full"]


class Channel(TypedDict):
    id: str
    name: str
    handle: Optional[str]


class Playlist(TypedDict):
    id: str
    title: Optional[str]


class ChannelName(TypedDict):
    id: str
    name: str


class CaptionTrack(TypedDict):
    languageCode: str
    name: str
    generated: bool


class Chapter(TypedDict):
    title: str
    start: float


class _Metadata(TypedDict):
    title: Optional[str]
    url: str
    publishedAt: Optional[str]
    publishedText: Optional[str]
    durationSeconds: Optional[float]
    viewCount: Optional[int]
    thumbnailUrl: Optional[str]
    kind: Optional[Kind]
    captionTracks: Optional[List[CaptionTrack]]


class Metadata(_Metadata, total=False):
    """`channel` is absent where the response has a channel at its top, the others unless `include` names them."""

    channel: Optional[ChannelName]
    description: Optional[str]
    chapters: Optional[List[Chapter]]
    tags: Optional[List[str]]


class _Segment(TypedDict):
    text: str
    start: float
    duration: float


class Segment(_Segment, total=False):
    """`chapter` is there with `chunk_seconds`, in a video with chapters."""

    chapter: Optional[str]


class _VideoError(TypedDict):
    code: str
    message: str
    retryable: bool


class VideoError(_VideoError, total=False):
    retryAfterSeconds: int


class _VideoTranscript(TypedDict):
    videoId: str
    ok: bool
    metadata: Metadata
    transcript: Dict[str, List[Segment]]
    cached: bool


class TextTrack(TypedDict):
    name: str
    generated: bool


class VideoTranscript(_VideoTranscript, total=False):
    """An entry. `error` is there exactly when `ok` is false."""

    error: VideoError
    #: The track of each text, by language code; entries that version 1.0 of the service has stored have none.
    tracks: Dict[str, TextTrack]


class JobVideoTranscript(VideoTranscript):
    position: int
    cursor: Cursor


class FollowedVideo(VideoTranscript):
    """An entry of a subscription. Store `cursor` with what is made of it: the iterator goes on after it."""

    cursor: Cursor


class FeedVideo(FollowedVideo):
    subscriptionId: str
    labels: Dict[str, str]
    channel: Optional[Channel]


class _Summary(TypedDict):
    total: int
    succeeded: int
    failed: int
    cached: int
    fetched: int


class Summary(_Summary, total=False):
    sinceFound: bool


class JobSummary(_Summary):
    pending: int


class VideosTranscripts(TypedDict):
    results: List[VideoTranscript]
    summary: Summary


class _Listed(TypedDict, total=False):
    #: When the list was read, if YouTube refuses it at the moment.
    listedAt: str


class ChannelTranscripts(VideosTranscripts, _Listed):
    channel: Channel


class PlaylistTranscripts(VideosTranscripts, _Listed):
    playlist: Playlist


class ListedUpload(TypedDict):
    videoId: str
    metadata: Metadata


class _ChannelUploads(TypedDict):
    channel: Channel
    uploads: List[ListedUpload]


class ChannelUploads(_ChannelUploads, _Listed, total=False):
    sinceFound: bool


class _PlaylistVideos(TypedDict):
    playlist: Playlist
    videos: List[ListedUpload]


class PlaylistVideos(_PlaylistVideos, _Listed):
    pass


class _Event(TypedDict):
    type: Literal["channel", "playlist", "result", "summary"]


class Event(_Event, total=False):
    """A line of a stream: first `channel` or `playlist`, then each `result` as it finishes, last `summary`."""

    channel: Channel
    playlist: Playlist
    result: VideoTranscript
    summary: Summary


class UsagePeriod(TypedDict):
    start: str
    end: str


class UsageCounts(TypedDict):
    limit: int
    used: int
    reserved: int
    remaining: int


class MonthUsed(TypedDict):
    period: str
    used: int


class LibraryUsage(TypedDict):
    videos: int
    megabytes: int
    limitMegabytes: int


class _Usage(UsageCounts):
    organization: str
    plan: str
    period: UsagePeriod
    history: List[MonthUsed]
    library: LibraryUsage


class Usage(_Usage, total=False):
    key: UsageCounts


class Job(TypedDict):
    id: str
    state: Literal["queued", "listing", "running", "paused", "completed", "canceled", "failed"]
    reason: Optional[str]
    channel: Optional[Channel]
    playlist: Optional[Playlist]
    request: Dict[str, Any]
    labels: Dict[str, str]
    keep: Keep
    summary: JobSummary
    #: Videos that YouTube counts in the list and does not list.
    hidden: int
    createdAt: str
    startedAt: Optional[str]
    finishedAt: Optional[str]
    expiresAt: Optional[str]
    checkAgainSeconds: Optional[int]


class Subscription(TypedDict):
    id: str
    state: Literal["active", "paused"]
    reason: Optional[str]
    channel: Optional[Channel]
    playlist: Optional[Playlist]
    request: Dict[str, Any]
    labels: Dict[str, str]
    keep: Keep
    #: Whether the video of `start` was found; None before the first check, and for another `start`.
    startFound: Optional[bool]
    summary: JobSummary
    createdAt: str
    checkedAt: Optional[str]
    nextCheckAt: Optional[str]


#: A place in `text`: `from` its begin, and `to` the place after its end, in UTF-16 code units.
Place = TypedDict("Place", {"from": int, "to": int})


class _KeptVideo(TypedDict):
    videoId: str
    title: Optional[str]
    channel: Optional[Channel]
    publishedAt: Optional[str]


class SearchResult(_KeptVideo):
    """A passage of about 30 seconds that a search has found."""

    language: str
    generated: Optional[bool]
    start: float
    #: To the second of the first match.
    url: str
    text: str
    matches: List[Place]


class LibraryVideo(_KeptVideo):
    url: str
    durationSeconds: Optional[float]
    languages: List[str]
    labels: List[str]
    keptAt: str


class DocumentMetadata(TypedDict):
    videoId: str
    title: Optional[str]
    channelId: Optional[str]
    channelName: Optional[str]
    #: To the second.
    url: str
    start: float
    end: float
    chapter: Optional[str]
    language: str
    generated: Optional[bool]
    publishedAt: Optional[str]


class _DocumentCursor(TypedDict, total=False):
    #: Of what is stored, in the last document of a video: the place after it.
    cursor: Cursor


class Document(_DocumentCursor):
    """A piece of a transcript, ready for a vector store. The same piece has the same `id` in every run."""

    id: str
    text: str
    metadata: DocumentMetadata


class FailedDocument(_DocumentCursor):
    """A video without a transcript; `id` is that of the video."""

    id: str
    error: VideoError
