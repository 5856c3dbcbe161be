"""The exceptions of youtube-transcript-api 1.2, raised for the codes of the service."""

from typing import Iterable, List, Optional

from .._errors import (
    ChannelTranscriptsError,
    TranscriptUnavailableError,
    UpstreamBlockedError,
    VideoAgeRestrictedError,
    VideoLiveError,
    VideoMembersOnlyError,
    VideoNotFoundError,
    VideoNotLiveYetError,
    VideoPrivateError,
    VideoUnavailableError,
)


class YouTubeTranscriptApiException(Exception):
    """The base of all exceptions of this module."""


class CookieError(YouTubeTranscriptApiException):
    """Not raised: the service uses no cookies."""


class CookiePathInvalid(CookieError):
    """Not raised."""


class CookieInvalid(CookieError):
    """Not raised."""


class CouldNotRetrieveTranscript(YouTubeTranscriptApiException):
    """
    There is no transcript; `cause` says why. Where the service refused the call, `__cause__` is its
    `channel_transcripts.ChannelTranscriptsError`, with the code, and whether a retry can succeed.
    """

    #: Why, if the class alone says it.
    CAUSE_MESSAGE = ""

    def __init__(self, video_id: str, *details: object) -> None:
        # All arguments, so that the exception can be copied to another process.
        super().__init__(video_id, *details)
        self.video_id = video_id

    @property
    def cause(self) -> str:
        return self.CAUSE_MESSAGE

    def __str__(self) -> str:
        url = f"https://www.youtube.com/watch?v={self.video_id}"
        return f"No transcript of {url}" + (f": {self.cause}" if self.cause else ".")


class YouTubeDataUnparsable(CouldNotRetrieveTranscript):
    """Not raised."""

    CAUSE_MESSAGE = "The response could not be read."


class YouTubeRequestFailed(CouldNotRetrieveTranscript):
    """Everything that has no exception of its own: the quota, the API key, a failure of the service or of YouTube."""

    def __init__(self, video_id: str, http_error: Exception) -> None:
        super().__init__(video_id, http_error)
        self.reason = str(http_error)

    @property
    def cause(self) -> str:
        return self.reason


class VideoUnplayable(CouldNotRetrieveTranscript):
    """The video is private, for members only, live, or has not started."""

    def __init__(self, video_id: str, reason: Optional[str], sub_reasons: List[str]) -> None:
        super().__init__(video_id, reason, sub_reasons)
        self.reason = reason
        self.sub_reasons = sub_reasons

    @property
    def cause(self) -> str:
        return " ".join([self.reason or "The video cannot be played.", *self.sub_reasons])


class VideoUnavailable(CouldNotRetrieveTranscript):
    CAUSE_MESSAGE = "The video was removed or is unavailable."


class InvalidVideoId(CouldNotRetrieveTranscript):
    CAUSE_MESSAGE = "This is not the ID of a video. Pass the 11 characters of the ID, not the URL."


class RequestBlocked(CouldNotRetrieveTranscript):
    """YouTube blocks the service. It tries again by other ways before it says so; retry later."""

    CAUSE_MESSAGE = "YouTube currently blocks the requests of the service. Retry later."

    def with_proxy_config(self, proxy_config: object) -> "RequestBlocked":
        return self


class IpBlocked(RequestBlocked):
    """Not raised: the service reports every block as RequestBlocked."""


class TranscriptsDisabled(CouldNotRetrieveTranscript):
    CAUSE_MESSAGE = "The video has no captions."


class AgeRestricted(CouldNotRetrieveTranscript):
    CAUSE_MESSAGE = "The video is age-restricted and requires a sign-in, which the service does not have."


class NotTranslatable(CouldNotRetrieveTranscript):
    """Raised by every translation: the service returns no machine translations."""

    CAUSE_MESSAGE = "The service returns no machine translations."


class TranslationLanguageNotAvailable(CouldNotRetrieveTranscript):
    """Not raised: see NotTranslatable."""

    CAUSE_MESSAGE = "There is no translation to this language."


class FailedToCreateConsentCookie(CouldNotRetrieveTranscript):
    """Not raised."""

    CAUSE_MESSAGE = "The consent to cookies failed."


class PoTokenRequired(CouldNotRetrieveTranscript):
    """Not raised: the service reports it as RequestBlocked."""

    CAUSE_MESSAGE = "The transcript requires a PO token."


class FormattingNotAvailable(CouldNotRetrieveTranscript):
    """Raised for `preserve_formatting=True`, which youtube-transcript-api can and the service cannot do."""

    CAUSE_MESSAGE = "The service returns plain text. Call it without preserve_formatting."


class NoTranscriptFound(CouldNotRetrieveTranscript):
    """None of the requested languages is there; the message lists those that are."""

    def __init__(self, video_id: str, requested_language_codes: Iterable[str], transcript_data: object) -> None:
        # Of the list its text, because the client in it cannot be copied to another process.
        self._requested_language_codes, self._transcript_data = list(requested_language_codes), str(transcript_data)
        super().__init__(video_id, self._requested_language_codes, self._transcript_data)

    @property
    def cause(self) -> str:
        return f"It has none in {', '.join(self._requested_language_codes)}.\n\n{self._transcript_data}"


_UNPLAYABLE = (VideoPrivateError, VideoMembersOnlyError, VideoLiveError, VideoNotLiveYetError)


def exception_of(video_id: str, error: ChannelTranscriptsError) -> CouldNotRetrieveTranscript:
    """The exception for an error of the service."""
    if isinstance(error, TranscriptUnavailableError):
        return TranscriptsDisabled(video_id)
    if isinstance(error, VideoUnavailableError):
        return VideoUnavailable(video_id)
    if isinstance(error, VideoNotFoundError):
        return InvalidVideoId(video_id)
    if isinstance(error, VideoAgeRestrictedError):
        return AgeRestricted(video_id)
    if isinstance(error, UpstreamBlockedError):
        return RequestBlocked(video_id)
    if isinstance(error, _UNPLAYABLE):
        return VideoUnplayable(video_id, error.message, [])
    return YouTubeRequestFailed(video_id, error)
