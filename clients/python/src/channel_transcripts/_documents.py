"""Pieces of transcripts for vector stores and prompts."""

import importlib
from typing import Any, Dict, Iterator, List, Literal, Optional, Union, cast, overload

from ._types import ChannelName, Document, FailedDocument, Metadata, Segment, VideoTranscript

Form = Literal["dict", "langchain", "llama_index"]


@overload
def documents_of(
    entry: VideoTranscript,
    form: Literal["dict"] = "dict",
    *,
    chunk_seconds: Optional[int] = None,
    channel: Optional[ChannelName] = None,
) -> List[Union[Document, FailedDocument]]: ...


@overload
def documents_of(
    entry: VideoTranscript,
    form: Form,
    *,
    chunk_seconds: Optional[int] = None,
    channel: Optional[ChannelName] = None,
) -> List[Any]: ...


def documents_of(
    entry: VideoTranscript,
    form: Form = "dict",
    *,
    chunk_seconds: Optional[int] = None,
    channel: Optional[ChannelName] = None,
) -> List[Any]:
    """
    The documents of an entry: one for each of its segments. With the form "langchain" they are
    `langchain_core.documents.Document`, with "llama_index" `llama_index.core.Document`; either package is imported only
    then. An entry that failed is one dict `{"id", "error"}` in every form.

    :param chunk_seconds: joins the segments to pieces of at most this length, for entries that were not requested with it
    :param channel: the channel of the response, where the metadata of an entry does not name it
    """
    if not entry["ok"]:
        return [FailedDocument(id=entry["videoId"], error=entry["error"])]
    documents = _documents(entry, chunk_seconds or 0, channel)
    if form == "dict":
        return list(documents)
    if form == "langchain":
        langchain = importlib.import_module("langchain_core.documents").Document
        return [
            langchain(id=one["id"], page_content=one["text"], metadata=dict(one["metadata"])) for one in documents
        ]
    if form == "llama_index":
        llama_index = importlib.import_module("llama_index.core").Document
        return [llama_index(id_=one["id"], text=one["text"], metadata=dict(one["metadata"])) for one in documents]
    raise ValueError(f"form must be dict, langchain or llama_index, but is {form!r}.")


def _documents(entry: VideoTranscript, seconds: int, given: Optional[ChannelName]) -> Iterator[Document]:
    metadata = entry["metadata"]
    video_id = entry["videoId"]
    channel = metadata.get("channel") or given
    for language, segments in entry["transcript"].items():
        for piece in _pieces(segments, seconds):
            second = int(piece["start"])
            yield {
                "id": f"{video_id}:{language}:{second}",
                "text": piece["text"],
                "metadata": {
                    "videoId": video_id,
                    "title": metadata["title"],
                    "channelId": channel["id"] if channel else None,
                    "channelName": channel["name"] if channel else None,
                    "url": f"{metadata['url']}&t={second}s",
                    "start": piece["start"],
                    "end": round(piece["start"] + piece["duration"], 3),
                    "chapter": cast(Dict[str, Any], piece).get("chapter") or _chapter_at(metadata, piece["start"]),
                    "language": language,
                    "generated": _is_generated(entry, language),
                    "publishedAt": metadata["publishedAt"],
                },
            }


def _pieces(segments: List[Segment], seconds: int) -> List[Segment]:
    """Joins segments up to a length, and always those that begin in the same second, because their documents have one ID."""
    pieces: List[Segment] = []
    for segment in segments:
        last = pieces[-1] if pieces else None
        end = segment["start"] + segment["duration"]
        if last is not None and (int(segment["start"]) == int(last["start"]) or end - last["start"] <= seconds):
            last["text"] += " " + segment["text"]
            last["duration"] = max(last["duration"], end - last["start"])
        else:
            pieces.append(segment.copy())
    return pieces


def _chapter_at(metadata: Metadata, second: float) -> Optional[str]:
    title = None
    for chapter in metadata.get("chapters") or []:
        if chapter["start"] <= second:
            title = chapter["title"]
    return title


def _is_generated(entry: VideoTranscript, language: str) -> Optional[bool]:
    track = cast(Dict[str, Any], entry).get("tracks", {}).get(language)
    if track is not None:
        return bool(track["generated"])
    # A manual track takes precedence.
    origins = [one["generated"] for one in entry["metadata"]["captionTracks"] or [] if one["languageCode"] == language]
    return all(origins) if origins else None
