import contextlib
import io
import os
import pickle
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List
from unittest import mock

from channel_transcripts import ChannelTranscriptsError
from channel_transcripts.youtube_transcript_api import (
    AgeRestricted,
    CouldNotRetrieveTranscript,
    FetchedTranscriptSnippet,
    InvalidVideoId,
    NoTranscriptFound,
    NotTranslatable,
    RequestBlocked,
    TranscriptsDisabled,
    VideoUnavailable,
    VideoUnplayable,
    YouTubeRequestFailed,
    YouTubeTranscriptApi,
)
from channel_transcripts.youtube_transcript_api.proxies import (
    GenericProxyConfig,
    InvalidProxyConfig,
    WebshareProxyConfig,
)
from scripted import KEY, Answer, ScriptedService, answer, refusal
from service import client, needs_service

PROGRAMS = Path(__file__).parent / "programs"
TRACKS: List[Dict[str, Any]] = [
    {"languageCode": "en", "name": "English (auto-generated)", "generated": True},
    {"languageCode": "en", "name": "English", "generated": False},
    {"languageCode": "iw", "name": "Hebrew", "generated": False},
    {"languageCode": "de", "name": "German (auto-generated)", "generated": True},
]
LISTED = refusal(404, "language_unavailable", captionTracks=TRACKS)


def entry(code: str, tracks: List[Dict[str, Any]] = TRACKS) -> Answer:
    segments = [{"text": f"Text in {code}.", "start": 0.24, "duration": 1.5}]
    return answer({"ok": True, "metadata": {"captionTracks": tracks}, "transcript": {code: segments}})


def api_of(service: ScriptedService) -> YouTubeTranscriptApi:
    with mock.patch.dict(os.environ, CHANNEL_TRANSCRIPTS_URL=service.url, CHANNEL_TRANSCRIPTS_KEY=KEY):
        return YouTubeTranscriptApi()


class Fetch(unittest.TestCase):
    def test_returns_the_first_language_in_one_request(self) -> None:
        with ScriptedService(entry("iw")) as service:
            fetched = api_of(service).fetch("tw-chowder_", languages=("fr", "iw"))
        paths = [one.path for one in service.sent]
        self.assertEqual(paths, ["/videos/tw-chowder_/transcript?languages=fr%2Ciw&match=first"])
        self.assertEqual((fetched.video_id, fetched.language, fetched.language_code), ("tw-chowder_", "Hebrew", "iw"))
        self.assertEqual((fetched.is_generated, len(fetched)), (False, 1))
        self.assertEqual(fetched[0], FetchedTranscriptSnippet("Text in iw.", 0.24, 1.5))
        self.assertEqual(list(fetched), fetched.snippets)
        self.assertEqual(fetched.to_raw_data(), [{"text": "Text in iw.", "start": 0.24, "duration": 1.5}])

    def test_returns_english_by_default_and_a_manual_transcript_before_a_generated_one(self) -> None:
        with ScriptedService(entry("en")) as service:
            fetched = api_of(service).fetch("tw-chowder_")
        self.assertEqual((fetched.language, fetched.is_generated), ("English", False))

    def test_raises_what_is_there_when_none_of_the_languages_is(self) -> None:
        with ScriptedService(LISTED) as service:
            with self.assertRaises(NoTranscriptFound) as raised:
                api_of(service).fetch("tw-chowder_", ["fr"])
        for part in ("tw-chowder_", "none in fr", 'iw ("Hebrew")', '- en ("English (auto-generated)")'):
            self.assertIn(part, str(raised.exception))
        self.assertEqual(raised.exception.video_id, "tw-chowder_")

    def test_takes_languages_exactly_as_that_library_does(self) -> None:
        british = [{"languageCode": "en-GB", "name": "English (United Kingdom)", "generated": False}, TRACKS[3]]
        with ScriptedService(entry("en-GB", british)) as service, self.assertRaises(NoTranscriptFound):
            api_of(service).fetch("tw-chowder_", ["en"])
        with ScriptedService(entry("en-GB", british), entry("de")) as service:
            self.assertEqual(api_of(service).fetch("tw-chowder_", ["en", "de"]).language_code, "de")

    def test_takes_any_words_and_any_number_of_languages(self) -> None:
        many = [f"a{one}" for one in "bcdefghijklmnopqrstuv"]
        for codes in (["any", "iw"], ["*", "iw"], [*many, "iw"], ["en_US", "iw"]):
            with ScriptedService(LISTED, entry("iw")) as service:
                self.assertEqual(api_of(service).fetch("tw-chowder_", codes).language_code, "iw")
        with ScriptedService(LISTED) as service, self.assertRaises(NoTranscriptFound):
            api_of(service).fetch("tw-chowder_", [])


class Lists(unittest.TestCase):
    def test_have_manual_transcripts_first_and_fetch_no_text(self) -> None:
        with ScriptedService(LISTED) as service:
            found = api_of(service).list("tw-chowder_")
            kinds = [(one.language_code, one.is_generated) for one in found]
            self.assertEqual(kinds, [("en", False), ("iw", False), ("en", True), ("de", True)])
            self.assertFalse(found.find_transcript(["de", "en"]).language == "English")
            self.assertEqual(found.find_transcript(["fr", "en"]).language, "English")
            self.assertEqual(found.find_generated_transcript(["en"]).language, "English (auto-generated)")
            self.assertEqual(found.find_manually_created_transcript(["de", "iw"]).language, "Hebrew")
            with self.assertRaises(NoTranscriptFound):
                found.find_manually_created_transcript(["de"])
        self.assertEqual([one.path for one in service.sent], ["/videos/tw-chowder_/transcript?languages=qaa"])
        self.assertIn('(GENERATED)\n - en ("English (auto-generated)")\n - de', str(found))

    def test_fetch_the_text_of_the_transcript_that_is_asked_for(self) -> None:
        with ScriptedService(LISTED, entry("iw"), entry("en"), entry("en"), entry("de")) as service:
            found = api_of(service).list("tw-chowder_")
            hebrew = found.find_transcript(["iw"]).fetch()
            manual = found.find_manually_created_transcript(["en"]).fetch()
            generated = found.find_generated_transcript(["en"]).fetch()
            found.find_generated_transcript(["de"]).fetch()
        self.assertEqual((hebrew[0].text, manual.is_generated, generated.is_generated), ("Text in iw.", False, True))
        wanted = ["iw", "en", "en&tracks=generated", "de"]
        self.assertEqual([one.path.partition("languages=")[2] for one in service.sent[1:]], wanted)

    def test_have_no_translations(self) -> None:
        with ScriptedService(LISTED) as service:
            transcript = api_of(service).list("tw-chowder_").find_transcript(["en"])
        self.assertEqual((transcript.is_translatable, transcript.translation_languages), (False, []))
        with self.assertRaises(NotTranslatable):
            transcript.translate("de")


class Exceptions(unittest.TestCase):
    CODES = {
        "transcript_unavailable": (404, TranscriptsDisabled),
        "video_unavailable": (404, VideoUnavailable),
        "video_private": (404, VideoUnplayable),
        "video_members_only": (404, VideoUnplayable),
        "video_age_restricted": (404, AgeRestricted),
        "video_not_live_yet": (409, VideoUnplayable),
        "video_live": (409, VideoUnplayable),
        "video_not_found": (404, InvalidVideoId),
        "upstream_blocked": (502, RequestBlocked),
        "upstream_timeout": (504, YouTubeRequestFailed),
        "rate_limited": (429, YouTubeRequestFailed),
        "plan_limit_exceeded": (402, YouTubeRequestFailed),
        "invalid_api_key": (401, YouTubeRequestFailed),
        "of_tomorrow": (418, YouTubeRequestFailed),
    }

    def test_are_those_of_that_library_with_the_error_of_the_service_as_their_cause(self) -> None:
        for code, (status, kind) in self.CODES.items():
            with ScriptedService(refusal(status, code)) as service:
                calls: List[Callable[[str], Any]] = [api_of(service).fetch, api_of(service).list]
                for call in calls:
                    with self.assertRaises(CouldNotRetrieveTranscript) as raised:
                        call("tw-chowder_")
                    error = raised.exception
                    self.assertEqual((code, type(error), error.video_id), (code, kind, "tw-chowder_"))
                    self.assertIn(f"https://www.youtube.com/watch?v=tw-chowder_: {error.cause}", str(error))
                    assert isinstance(error.__cause__, ChannelTranscriptsError)
                    self.assertEqual(error.__cause__.code, code)
                    self.assertNotIn(KEY, str(error))
                    self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))

    def test_say_what_the_service_cannot_do(self) -> None:
        with ScriptedService(LISTED) as service:
            api = api_of(service)
            transcript = api.list("tw-chowder_").find_transcript(["en"])
            calls: List[Callable[[], Any]] = [
                lambda: api.fetch("tw-chowder_", preserve_formatting=True),
                lambda: transcript.fetch(preserve_formatting=True),
            ]
            for call in calls:
                with self.assertRaisesRegex(CouldNotRetrieveTranscript, "preserve_formatting"):
                    call()
            with self.assertRaises(InvalidVideoId):
                api.fetch("https://www.youtube.com/watch?v=tw-chowder_")
        self.assertEqual(len(service.sent), 1)

    def test_name_the_settings_that_are_missing(self) -> None:
        with mock.patch.dict(os.environ, CHANNEL_TRANSCRIPTS_URL="http://localhost", CHANNEL_TRANSCRIPTS_KEY=""):
            with self.assertRaisesRegex(ValueError, "CHANNEL_TRANSCRIPTS_URL and CHANNEL_TRANSCRIPTS_KEY"):
                YouTubeTranscriptApi()

    def test_of_proxies_are_those_of_that_library(self) -> None:
        only = GenericProxyConfig(https_url="https://proxy.example")
        self.assertEqual(only.to_requests_dict(), {"http": "https://proxy.example", "https": "https://proxy.example"})
        with self.assertRaises(InvalidProxyConfig):
            GenericProxyConfig()
        rotating = WebshareProxyConfig("user-rotate", "secret", filter_ip_locations=["de", "us"])
        self.assertEqual(rotating.url, "http://user-DE-US-rotate:secret@p.webshare.io:80/")


@needs_service
class Programs(unittest.TestCase):
    """Programs written for youtube-transcript-api, unchanged but for the import."""

    def run_program(self, name: str, *arguments: str) -> str:
        source = (PROGRAMS / name).read_text(encoding="utf-8")
        changed = source.replace("from youtube_transcript_api", "from channel_transcripts.youtube_transcript_api")
        self.assertNotEqual(source, changed)
        output = io.StringIO()
        with mock.patch.object(sys, "argv", [name, *arguments]), contextlib.redirect_stdout(output):
            exec(compile(changed, name, "exec"), {"__name__": "__main__"})
        return output.getvalue()

    def test_that_summarize_run(self) -> None:
        videos = ("hl-werft___", "hl-silent__", "hl-pearl___", "hl-deleted_", "tw-chowder_")
        printed = self.run_program("summary.py", *videos)
        self.assertRegex(
            printed,
            r"^hl-werft___: German \(auto-generated\), \d+ snippets, \d+\.\d min, \w+, \w+\n"
            r"hl-silent__: skipped, TranscriptsDisabled\n"
            r"hl-pearl___: skipped, NoTranscriptFound\n"
            r"hl-deleted_: skipped, VideoUnavailable\n"
            r"tw-chowder_: English, \d+ snippets, \d+\.\d min, eight, people\n$",
        )

    def test_that_load_records_run_and_pay_for_the_texts_that_they_fetch(self) -> None:
        before = client().usage()["used"]
        lines = self.run_program("loader.py", "hl-foghorn_").splitlines()
        self.assertRegex(lines[0], r'^\{"text": ".+", "source": \{"video": "hl-foghorn_", "language": "ja"\}\}$')
        self.assertEqual(lines[1:], ["no translation of Japanese, translatable: False"])
        self.assertEqual(client().usage()["used"] - before, 1)

    def test_that_write_subtitles_run(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            printed = self.run_program("subtitles.py", "hl-dinghy__", folder)
            self.assertEqual(printed, "hl-dinghy__.en.srt\nhl-dinghy__.en.vtt\n")
            srt = (Path(folder) / "hl-dinghy__.en.srt").read_text(encoding="utf-8")
            vtt = (Path(folder) / "hl-dinghy__.en.vtt").read_text(encoding="utf-8")
            self.assertTrue(srt.startswith("1\n00:00:00,240 --> 00:00:03,440\nGood morning from the slip"), srt[:80])
            self.assertTrue(vtt.startswith("WEBVTT\n\n00:00:00.240 --> 00:00:03.440\nGood morning"), vtt[:80])
            with self.assertRaisesRegex(SystemExit, "none in en"):
                self.run_program("subtitles.py", "hl-bowline_", folder)
