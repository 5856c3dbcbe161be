"""Transcripts, and the list of those that a video has."""

from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List

from .._types import CaptionTrack
from ._errors import FormattingNotAvailable, NoTranscriptFound, NotTranslatable


@dataclass
class FetchedTranscriptSnippet:
    text: str
    #: In seconds.
    start: float
    #: How long it is on screen; snippets can overlap.
    duration: float


@dataclass
class FetchedTranscript:
    """The text of a transcript: a sequence of its snippets."""

    snippets: List[FetchedTranscriptSnippet]
    video_id: str
    language: str
    language_code: str
    is_generated: bool

    def __iter__(self) -> Iterator[FetchedTranscriptSnippet]:
        return iter(self.snippets)

    def __getitem__(self, index: Any) -> Any:
        return self.snippets[index]

    def __len__(self) -> int:
        return len(self.snippets)

    def to_raw_data(self) -> List[Dict[str, Any]]:
        return [asdict(snippet) for snippet in self.snippets]


class Transcript:
    """One caption track of a video. Its text is requested by `fetch`."""

    def __init__(
        self, video_id: str, track: CaptionTrack, load: Callable[["Transcript"], FetchedTranscript]
    ) -> None:
        self.video_id = video_id
        self.language = track["name"]
        self.language_code = track["languageCode"]
        self.is_generated = track["generated"]
        #: Always empty: the service returns no machine translations.
        self.translation_languages: List[Any] = []
        self._load = load

    def fetch(self, preserve_formatting: bool = False) -> FetchedTranscript:
        if preserve_formatting:
            raise FormattingNotAvailable(self.video_id)
        return self._load(self)

    @property
    def is_translatable(self) -> bool:
        return False

    def translate(self, language_code: str) -> "Transcript":
        raise NotTranslatable(self.video_id)

    def __str__(self) -> str:
        return f'{self.language_code} ("{self.language}")'


class TranscriptList:
    """The transcripts of a video: first those made by people, then those by speech recognition."""

    def __init__(
        self,
        video_id: str,
        manually_created_transcripts: Dict[str, Transcript],
        generated_transcripts: Dict[str, Transcript],
        translation_languages: List[Any],
    ) -> None:
        self.video_id = video_id
        self._manually_created_transcripts = manually_created_transcripts
        self._generated_transcripts = generated_transcripts
        self._translation_languages = translation_languages

    def __iter__(self) -> Iterator[Transcript]:
        yield from self._manually_created_transcripts.values()
        yield from self._generated_transcripts.values()

    def find_transcript(self, language_codes: Iterable[str]) -> Transcript:
        """Finds the first of the languages that the video has; of each a manual transcript before a generated one."""
        return self._find(language_codes, self._manually_created_transcripts, self._generated_transcripts)

    def find_manually_created_transcript(self, language_codes: Iterable[str]) -> Transcript:
        return self._find(language_codes, self._manually_created_transcripts)

    def find_generated_transcript(self, language_codes: Iterable[str]) -> Transcript:
        return self._find(language_codes, self._generated_transcripts)

    def _find(self, language_codes: Iterable[str], *kinds: Dict[str, Transcript]) -> Transcript:
        codes = list(language_codes)
        for code in codes:
            for transcripts in kinds:
                if code in transcripts:
                    return transcripts[code]
        raise NoTranscriptFound(self.video_id, codes, self)

    def __str__(self) -> str:
        parts = {
            "MANUALLY CREATED": self._manually_created_transcripts,
            "GENERATED": self._generated_transcripts,
        }
        lines = [f"Transcripts of the video {self.video_id}:"]
        for name, transcripts in parts.items():
            lines += ["", f"({name})", *(f" - {one}" for one in transcripts.values() or ["None"])]
        return "\n".join([*lines, "", "(TRANSLATION LANGUAGES)", " - None"])
