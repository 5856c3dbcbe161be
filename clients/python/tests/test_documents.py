import sys
import types
import unittest
from typing import Any, Dict, List, cast
from unittest import mock

from channel_transcripts import VideoTranscript, documents_of
from scripted import ScriptedService, lines


def entry(*segments: "tuple[str, float, float]", **metadata: Any) -> VideoTranscript:
    made = {
        "videoId": "tw-chowder_",
        "ok": True,
        "metadata": {
            "title": "Chowder",
            "url": "https://www.youtube.com/watch?v=tw-chowder_",
            "publishedAt": None,
            "publishedText": None,
            "durationSeconds": None,
            "viewCount": None,
            "thumbnailUrl": None,
            "kind": None,
            "captionTracks": [
                {"languageCode": "en", "name": "English", "generated": False},
                {"languageCode": "en", "name": "English (auto-generated)", "generated": True},
                {"languageCode": "de", "name": "German (auto-generated)", "generated": True},
            ],
            **metadata,
        },
        "transcript": {"en": [{"text": text, "start": start, "duration": length} for text, start, length in segments]},
        "cached": False,
    }
    return cast(VideoTranscript, made)


FAILED = entry()
FAILED["ok"] = False
FAILED["error"] = {"code": "video_private", "message": "This video is private.", "retryable": False}


class Model:
    def __init__(self, **fields: Any) -> None:
        self.fields = fields


class Documents(unittest.TestCase):
    def places(self, documents: List[Any]) -> List[Any]:
        return [(one["id"], one["text"], one["metadata"]["start"], one["metadata"]["end"]) for one in documents]

    def test_are_the_segments_that_the_service_has_made(self) -> None:
        made = documents_of(entry(("One.", 0.5, 60), ("Two.", 60.5, 4)))
        self.assertEqual(
            self.places(made), [("tw-chowder_:en:0", "One.", 0.5, 60.5), ("tw-chowder_:en:60", "Two.", 60.5, 64.5)]
        )

    def test_join_short_segments_when_they_are_asked_to(self) -> None:
        made = documents_of(entry(("One", 0.5, 20), ("two", 20, 20), ("three", 45, 20)), chunk_seconds=60)
        self.assertEqual(
            self.places(made), [("tw-chowder_:en:0", "One two", 0.5, 40), ("tw-chowder_:en:45", "three", 45, 65)]
        )

    def test_never_have_the_same_id(self) -> None:
        made = documents_of(entry(("One", 1.1, 0.2), ("two", 1.4, 0.2), ("three", 2, 1)))
        self.assertEqual([one["id"] for one in made], ["tw-chowder_:en:1", "tw-chowder_:en:2"])

    def test_name_the_chapter_the_channel_and_the_origin(self) -> None:
        chapters = [{"title": "Begin", "start": 0}, {"title": "Cook", "start": 30}]
        given: Dict[str, Any] = {"chapters": chapters, "channel": {"id": "UC1", "name": "Tidewater Kitchen"}}
        made: List[Any] = documents_of(entry(("One.", 0, 30), ("Two.", 30, 30), **given))
        self.assertEqual([one["metadata"]["chapter"] for one in made], ["Begin", "Cook"])
        self.assertEqual(made[0]["metadata"]["channelId"], "UC1")
        self.assertIs(made[0]["metadata"]["generated"], False)
        german = entry(("Eins.", 0, 30))
        german["transcript"] = {"de": german["transcript"]["en"]}
        other: List[Any] = documents_of(german, channel={"id": "UC2", "name": "Other"})
        self.assertEqual((other[0]["metadata"]["channelName"], other[0]["metadata"]["generated"]), ("Other", True))

    def test_say_which_video_failed_in_every_form(self) -> None:
        for made in (documents_of(FAILED), documents_of(FAILED, "langchain"), documents_of(FAILED, "llama_index")):
            self.assertEqual(made, [{"id": "tw-chowder_", "error": FAILED["error"]}])

    def test_of_another_package_are_its_own_and_import_it_only_then(self) -> None:
        langchain, llama_index = types.ModuleType("langchain_core.documents"), types.ModuleType("llama_index.core")
        setattr(langchain, "Document", Model)
        setattr(llama_index, "Document", Model)
        self.assertFalse({"langchain_core", "llama_index"} & set(sys.modules))
        packages = {"langchain_core": types.ModuleType("langchain_core"), "llama_index": types.ModuleType("llama_index")}
        modules = {**packages, "langchain_core.documents": langchain, "llama_index.core": llama_index}
        with mock.patch.dict(sys.modules, modules):
            (one,) = documents_of(entry(("One.", 0, 30)), "langchain")
            (other,) = documents_of(entry(("One.", 0, 30)), "llama_index")
        self.assertEqual((one.fields["id"], one.fields["page_content"]), ("tw-chowder_:en:0", "One."))
        self.assertEqual((other.fields["id_"], other.fields["text"]), ("tw-chowder_:en:0", "One."))
        self.assertEqual(one.fields["metadata"], other.fields["metadata"])
        with self.assertRaises(ImportError):
            documents_of(entry(("One.", 0, 30)), "langchain")

    def test_of_a_call_have_the_channel_of_the_call(self) -> None:
        channel = {"type": "channel", "channel": {"id": "UC1", "name": "Tidewater Kitchen", "handle": None}}
        summary = {"type": "summary", "summary": {}}
        with ScriptedService(lines(channel, {"type": "result", "result": entry(("One.", 0, 30))}, summary)) as service:
            documents: List[Any] = list(service.client().documents(channel="@tidewater"))
        self.assertEqual(documents[0]["metadata"]["channelName"], "Tidewater Kitchen")
        self.assertIn("include=chapters&chunkSeconds=60", service.sent[0].path)
