"""The entry point: the calls of youtube-transcript-api, answered by the service."""

import os
import re
from typing import Any, Dict, Iterable, List, Optional

from .._client import Client
from .._errors import ChannelTranscriptsError, LanguageUnavailableError
from .._http import quoted
from .._types import CaptionTrack, VideoTranscript
from ._errors import FormattingNotAvailable, InvalidVideoId, exception_of
from ._transcripts import FetchedTranscript, FetchedTranscriptSnippet, Transcript, TranscriptList

#: For local use (ISO 639-2), so no video has it: the service then lists the tracks, fetches no text and charges nothing.
_NO_LANGUAGE = "qaa"
#: A language code as the service accepts it; "any" and "all" it takes for words.
_LANGUAGE_CODE = re.compile(r"(?!(?:any|all)$)[a-z]{2,3}(-[a-z0-9]{1,8}){0,4}", re.IGNORECASE)
_LANGUAGES_MAX = 20


class YouTubeTranscriptApi:
    """
    Reads CHANNEL_TRANSCRIPTS_URL and CHANNEL_TRANSCRIPTS_KEY from the environment.

    :param proxy_config: accepted and not used: the service has its own ways to YouTube
    :param http_client: accepted and not used
    """

    def __init__(self, proxy_config: Optional[Any] = None, http_client: Optional[Any] = None) -> None:
        url, key = (os.environ.get(f"CHANNEL_TRANSCRIPTS_{name}", "") for name in ("URL", "KEY"))
        if not url or not key:
            raise ValueError("Set CHANNEL_TRANSCRIPTS_URL and CHANNEL_TRANSCRIPTS_KEY: the service and an API key.")
        self._client = Client(url, key)

    def fetch(
        self, video_id: str, languages: Iterable[str] = ("en",), preserve_formatting: bool = False
    ) -> FetchedTranscript:
        """Fetches the transcript in the first of the languages that the video has; a manual one before a generated one."""
        if preserve_formatting:
            raise FormattingNotAvailable(video_id)
        codes = list(languages)
        if not 0 < len(codes) <= _LANGUAGES_MAX or not all(_LANGUAGE_CODE.fullmatch(code) for code in codes):
            return self.list(video_id).find_transcript(codes).fetch()
        try:
            entry = self._read(video_id, languages=",".join(codes), match="first")
        except LanguageUnavailableError as error:
            self._list_of(video_id, _tracks_of(error)).find_transcript(codes)
            raise exception_of(video_id, error) from error
        (code,) = entry["transcript"]
        transcript = self._list_of(video_id, entry["metadata"]["captionTracks"] or []).find_transcript(codes)
        # The service takes `en-GB` for `en`; the list has exactly the languages that are asked for.
        return _fetched(transcript, entry) if transcript.language_code == code else transcript.fetch()

    def list(self, video_id: str) -> TranscriptList:
        """Lists the transcripts that a video has, which costs nothing; each text is fetched when it is asked for."""
        try:
            tracks = self._read(video_id, languages=_NO_LANGUAGE)["metadata"]["captionTracks"]
        except LanguageUnavailableError as error:
            tracks = _tracks_of(error)
        return self._list_of(video_id, tracks or [])

    def _list_of(self, video_id: str, tracks: List[CaptionTrack]) -> TranscriptList:
        kinds: Dict[bool, Dict[str, Transcript]] = {False: {}, True: {}}

        def load(transcript: Transcript) -> FetchedTranscript:
            # Of a language with both kinds the service has the manual one, unless it is asked for the other.
            has_both = transcript.is_generated and transcript.language_code in kinds[False]
            origin = {"tracks": "generated"} if has_both else {}
            return _fetched(transcript, self._read(video_id, languages=transcript.language_code, **origin))

        for track in tracks:
            kinds[track["generated"]].setdefault(track["languageCode"], Transcript(video_id, track, load))
        return TranscriptList(video_id, kinds[False], kinds[True], [])

    def _read(self, video_id: str, **query: str) -> VideoTranscript:
        if re.match("https?://", video_id):
            raise InvalidVideoId(video_id)
        try:
            entry: VideoTranscript = self._client.call("GET", f"/videos/{quoted(video_id)}/transcript", query)
            return entry
        except LanguageUnavailableError:
            raise
        except ChannelTranscriptsError as error:
            raise exception_of(video_id, error) from error


def _tracks_of(error: LanguageUnavailableError) -> List[CaptionTrack]:
    tracks: List[CaptionTrack] = error.fields.get("captionTracks", [])
    return tracks


def _fetched(transcript: Transcript, entry: VideoTranscript) -> FetchedTranscript:
    return FetchedTranscript(
        snippets=[
            FetchedTranscriptSnippet(text=one["text"], start=one["start"], duration=one["duration"])
            for one in entry["transcript"][transcript.language_code]
        ],
        video_id=transcript.video_id,
        language=transcript.language,
        language_code=transcript.language_code,
        is_generated=transcript.is_generated,
    )
