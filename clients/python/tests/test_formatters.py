import json
import pprint
import unittest

from channel_transcripts.youtube_transcript_api import FetchedTranscript, FetchedTranscriptSnippet
from channel_transcripts.youtube_transcript_api.formatters import (
    Formatter,
    FormatterLoader,
    JSONFormatter,
    PrettyPrintFormatter,
    SRTFormatter,
    TextFormatter,
    WebVTTFormatter,
)


def transcript(*snippets: "tuple[str, float, float]") -> FetchedTranscript:
    return FetchedTranscript([FetchedTranscriptSnippet(*one) for one in snippets], "tw-chowder_", "English", "en", False)


CHOWDER = transcript(
    ("Eight people,\none pot.", 0.24, 3.5), ("Throw out — ä, 港 — what stays open.", 3.0, 1.5), ("Done.", 3725.9, 2.15)
)
RAW = [
    {"text": "Eight people,\none pot.", "start": 0.24, "duration": 3.5},
    {"text": "Throw out — ä, 港 — what stays open.", "start": 3.0, "duration": 1.5},
    {"text": "Done.", "start": 3725.9, "duration": 2.15},
]
EMPTY = transcript()


class Formatters(unittest.TestCase):
    def test_of_json_write_the_raw_data_with_the_options_of_json(self) -> None:
        self.assertEqual(JSONFormatter().format_transcript(CHOWDER), json.dumps(RAW))
        self.assertEqual(json.loads(JSONFormatter().format_transcripts([CHOWDER, EMPTY])), [RAW, []])
        pretty = JSONFormatter().format_transcript(CHOWDER, indent=2, ensure_ascii=False)
        self.assertEqual(pretty, json.dumps(RAW, indent=2, ensure_ascii=False))

    def test_of_python_data_write_it_with_the_options_of_pprint(self) -> None:
        self.assertEqual(PrettyPrintFormatter().format_transcript(CHOWDER), pprint.pformat(RAW))
        self.assertEqual(PrettyPrintFormatter().format_transcripts([CHOWDER, EMPTY]), pprint.pformat([RAW, []]))
        self.assertEqual(PrettyPrintFormatter().format_transcript(CHOWDER, width=20), pprint.pformat(RAW, width=20))

    def test_of_text_write_a_line_for_each_snippet(self) -> None:
        text = "Eight people,\none pot.\nThrow out — ä, 港 — what stays open.\nDone."
        self.assertEqual(TextFormatter().format_transcript(CHOWDER), text)
        self.assertEqual(TextFormatter().format_transcripts([CHOWDER, CHOWDER]), f"{text}\n\n\n{text}")
        self.assertEqual(TextFormatter().format_transcript(EMPTY), "")

    def test_of_subrip_number_the_cues_and_end_each_where_the_next_begins(self) -> None:
        srt = (
            "1\n00:00:00,240 --> 00:00:03,000\nEight people,\none pot.\n\n"
            "2\n00:00:03,000 --> 00:00:04,500\nThrow out — ä, 港 — what stays open.\n\n"
            "3\n01:02:05,900 --> 01:02:08,050\nDone.\n"
        )
        self.assertEqual(SRTFormatter().format_transcript(CHOWDER), srt)
        self.assertEqual(SRTFormatter().format_transcripts([CHOWDER, CHOWDER]), f"{srt}\n\n\n{srt}")

    def test_of_webvtt_begin_with_its_name(self) -> None:
        vtt = (
            "WEBVTT\n\n00:00:00.240 --> 00:00:03.000\nEight people,\none pot.\n\n"
            "00:00:03.000 --> 00:00:04.500\nThrow out — ä, 港 — what stays open.\n\n"
            "01:02:05.900 --> 01:02:08.050\nDone.\n"
        )
        self.assertEqual(WebVTTFormatter().format_transcript(CHOWDER), vtt)
        self.assertEqual(WebVTTFormatter().format_transcript(EMPTY), "WEBVTT\n\n\n")

    def test_of_subtitles_write_every_time_with_three_decimals(self) -> None:
        for seconds, written in ((0.0, "00:00:00.000"), (6.93, "00:00:06.930"), (59.9999, "00:00:59.999"), (360000.5, "100:00:00.500")):
            cue = WebVTTFormatter().format_transcript(transcript(("x", seconds, 0.0)))
            self.assertIn(f"{written} --> {written}\n", cue)

    def test_that_do_not_implement_a_method_raise(self) -> None:
        with self.assertRaises(NotImplementedError):
            Formatter().format_transcript(CHOWDER)
        with self.assertRaises(NotImplementedError):
            Formatter().format_transcripts([CHOWDER])

    def test_are_loaded_by_name(self) -> None:
        for name, kind in FormatterLoader.TYPES.items():
            self.assertIsInstance(FormatterLoader().load(name), kind)
        self.assertEqual(list(FormatterLoader.TYPES), ["json", "pretty", "text", "webvtt", "srt"])
        self.assertIsInstance(FormatterLoader().load(), PrettyPrintFormatter)
        with self.assertRaisesRegex(FormatterLoader.UnknownFormatterType, "json, pretty, text, webvtt, srt"):
            FormatterLoader().load("docx")
