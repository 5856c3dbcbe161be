"""The parameters that several operations share."""

from typing import Any, Dict, Iterable, Optional

from ._types import Includable, Match


def texts_of(
    languages: Optional[Iterable[str]],
    match: Optional[Match],
    include: Optional[Iterable[Includable]],
    chunk_seconds: Optional[int],
) -> Dict[str, Any]:
    """The parameters of every operation that is about transcripts; None for those that are left to the service."""
    return {
        "languages": joined(languages),
        "match": match,
        "include": joined(include),
        "chunkSeconds": chunk_seconds,
    }


def joined(words: Optional[Iterable[str]]) -> Optional[str]:
    # A text is an iterable of its letters: "de" would become "d,e".
    return words if words is None or isinstance(words, str) else ",".join(words)
