"""Transcripts as JSON, text, SubRip, WebVTT, and pretty-printed Python data."""

import json
import pprint
from typing import Any, Dict, List, Type

from ._transcripts import FetchedTranscript, FetchedTranscriptSnippet


class Formatter:
    """The base of formatters. A class of your own implements both methods."""

    def format_transcript(self, transcript: FetchedTranscript, **kwargs: Any) -> str:
        raise NotImplementedError(f"{type(self).__name__} does not implement format_transcript.")

    def format_transcripts(self, transcripts: List[FetchedTranscript], **kwargs: Any) -> str:
        raise NotImplementedError(f"{type(self).__name__} does not implement format_transcripts.")


class PrettyPrintFormatter(Formatter):
    """Takes the arguments of `pprint.pformat`."""

    def format_transcript(self, transcript: FetchedTranscript, **kwargs: Any) -> str:
        return pprint.pformat(transcript.to_raw_data(), **kwargs)

    def format_transcripts(self, transcripts: List[FetchedTranscript], **kwargs: Any) -> str:
        return pprint.pformat([transcript.to_raw_data() for transcript in transcripts], **kwargs)


class JSONFormatter(Formatter):
    """Takes the arguments of `json.dumps`."""

    def format_transcript(self, transcript: FetchedTranscript, **kwargs: Any) -> str:
        return json.dumps(transcript.to_raw_data(), **kwargs)

    def format_transcripts(self, transcripts: List[FetchedTranscript], **kwargs: Any) -> str:
        return json.dumps([transcript.to_raw_data() for transcript in transcripts], **kwargs)


class TextFormatter(Formatter):
    """A line for each snippet, without times."""

    def format_transcript(self, transcript: FetchedTranscript, **kwargs: Any) -> str:
        return "\n".join(snippet.text for snippet in transcript)

    def format_transcripts(self, transcripts: List[FetchedTranscript], **kwargs: Any) -> str:
        return "\n\n\n".join(self.format_transcript(transcript, **kwargs) for transcript in transcripts)


class _SubtitleFormatter(TextFormatter):
    _BEGIN = ""
    _DECIMAL_MARK = "."

    def format_transcript(self, transcript: FetchedTranscript, **kwargs: Any) -> str:
        # A cue ends where the next one begins, so that players show one at a time.
        starts = [snippet.start for snippet in transcript][1:] + [float("inf")]
        cues = [
            self._cue(index, snippet, min(snippet.start + snippet.duration, next_start))
            for index, (snippet, next_start) in enumerate(zip(transcript, starts), start=1)
        ]
        return self._BEGIN + "\n\n".join(cues) + "\n"

    def _cue(self, index: int, snippet: FetchedTranscriptSnippet, end: float) -> str:
        return f"{self._time(snippet.start)} --> {self._time(end)}\n{snippet.text}"

    def _time(self, seconds: float) -> str:
        # As youtube-transcript-api does: to the nearest hundredth of a millisecond, then cut to milliseconds.
        milliseconds = int(round((seconds - int(seconds)) * 1000, 2))
        minutes, second = divmod(int(seconds), 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}{self._DECIMAL_MARK}{milliseconds:03d}"


class SRTFormatter(_SubtitleFormatter):
    _DECIMAL_MARK = ","

    def _cue(self, index: int, snippet: FetchedTranscriptSnippet, end: float) -> str:
        return f"{index}\n{super()._cue(index, snippet, end)}"


class WebVTTFormatter(_SubtitleFormatter):
    _BEGIN = "WEBVTT\n\n"


class FormatterLoader:
    TYPES: Dict[str, Type[Formatter]] = {
        "json": JSONFormatter,
        "pretty": PrettyPrintFormatter,
        "text": TextFormatter,
        "webvtt": WebVTTFormatter,
        "srt": SRTFormatter,
    }

    class UnknownFormatterType(Exception):
        def __init__(self, formatter_type: str) -> None:
            known = ", ".join(FormatterLoader.TYPES)
            super().__init__(f"There is no format {formatter_type!r}. The formats are {known}.")

    def load(self, formatter_type: str = "pretty") -> Formatter:
        if formatter_type not in FormatterLoader.TYPES:
            raise FormatterLoader.UnknownFormatterType(formatter_type)
        return FormatterLoader.TYPES[formatter_type]()
