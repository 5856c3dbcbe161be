"""
The interface of youtube-transcript-api 1.2, answered by the service: change the import, and set CHANNEL_TRANSCRIPTS_URL and
CHANNEL_TRANSCRIPTS_KEY.
"""

from ._api import YouTubeTranscriptApi
from ._errors import (
    AgeRestricted,
    CookieError,
    CookieInvalid,
    CookiePathInvalid,
    CouldNotRetrieveTranscript,
    FailedToCreateConsentCookie,
    InvalidVideoId,
    IpBlocked,
    NoTranscriptFound,
    NotTranslatable,
    PoTokenRequired,
    RequestBlocked,
    TranscriptsDisabled,
    TranslationLanguageNotAvailable,
    VideoUnavailable,
    VideoUnplayable,
    YouTubeDataUnparsable,
    YouTubeRequestFailed,
    YouTubeTranscriptApiException,
)
from ._transcripts import FetchedTranscript, FetchedTranscriptSnippet, Transcript, TranscriptList

__all__ = [
    "YouTubeTranscriptApi",
    "TranscriptList",
    "Transcript",
    "FetchedTranscript",
    "FetchedTranscriptSnippet",
    "YouTubeTranscriptApiException",
    "CookieError",
    "CookiePathInvalid",
    "CookieInvalid",
    "TranscriptsDisabled",
    "NoTranscriptFound",
    "CouldNotRetrieveTranscript",
    "VideoUnavailable",
    "VideoUnplayable",
    "IpBlocked",
    "RequestBlocked",
    "NotTranslatable",
    "TranslationLanguageNotAvailable",
    "FailedToCreateConsentCookie",
    "YouTubeRequestFailed",
    "InvalidVideoId",
    "AgeRestricted",
    "YouTubeDataUnparsable",
    "PoTokenRequired",
]
