import json
import os
import time
import unittest
import urllib.request
from typing import Any, List
from unittest import mock

from channel_transcripts import (
    ChannelNotFoundError,
    Client,
    CursorUnknownError,
    FeatureNotInPlanError,
    IdempotencyConflictError,
    InvalidApiKeyError,
    InvalidRequestError,
    JobFinishedError,
    LanguageUnavailableError,
    SubscriptionNotFoundError,
)
from channel_transcripts.youtube_transcript_api import YouTubeTranscriptApi
from service import URL, client, free_client, needs_service


def short(seconds: float) -> None:
    """Asks the service again soon, instead of when its next check is due."""
    time.sleep(min(seconds, 0.05))


@needs_service
class Reads(unittest.TestCase):
    def test_return_the_transcripts_of_a_channel_for_every_form_of_reference(self) -> None:
        for reference in ("@tidewater", "https://www.youtube.com/@tidewater/videos"):
            answer = client().channel(reference, limit=2, languages=["en"], include=["chapters"])
            self.assertEqual(answer["channel"]["handle"], "@tidewater")
            self.assertEqual((len(answer["results"]), answer["summary"]["succeeded"]), (2, 2))
            self.assertTrue(answer["results"][0]["transcript"]["en"][0]["text"])
        self.assertEqual(client().channel("@港の灯台", limit=1)["channel"]["handle"], "@港の灯台")

    def test_return_playlists_lists_single_videos_uploads_and_the_usage(self) -> None:
        both = client().videos(["tw-chowder_", "tw-bread___"], chunk_seconds=60)
        self.assertEqual([one["videoId"] for one in both["results"]], ["tw-chowder_", "tw-bread___"])
        self.assertEqual(client().video("https://youtu.be/tw-chowder_")["videoId"], "tw-chowder_")
        self.assertRegex(client().video_as("srt", "tw-chowder_"), r"^1\n00:00:00,240 --> ")
        uploads = client().uploads("@tidewater", limit=2)["uploads"]
        self.assertEqual([one["videoId"] for one in uploads], ["tw-chowder_", "tw-bread___"])
        self.assertEqual(client().playlist(os.environ["PLAYLIST"], limit=1)["summary"]["total"], 1)
        self.assertEqual(client().usage()["plan"], "pro")
        self.assertIn("entries", client().call("GET", "/audit", {"limit": 1}))

    def test_stream_each_result_and_the_summary_last(self) -> None:
        events = list(client().channel_events("@tidewater", limit=3))
        self.assertEqual([one["type"] for one in events], ["channel", "result", "result", "result", "summary"])
        self.assertEqual({one["type"] for one in client().videos_events(["tw-chowder_"])}, {"result", "summary"})
        kinds = [one["type"] for one in client().playlist_events(os.environ["PLAYLIST"], limit=1)]
        self.assertEqual(kinds, ["playlist", "result", "summary"])

    def test_raise_the_exception_of_each_refusal(self) -> None:
        with self.assertRaises(ChannelNotFoundError) as unknown:
            client().channel("@no-such-channel")
        self.assertEqual((unknown.exception.status, unknown.exception.retryable), (404, False))
        with urllib.request.urlopen(str(unknown.exception.docs)) as page:
            self.assertIn(b'id="channel_not_found"', page.read())
        with self.assertRaises(InvalidRequestError) as wrong:
            client().channel("@tidewater", limit=0)
        self.assertEqual(wrong.exception.fields["details"][0]["field"], "limit")
        with self.assertRaises(FeatureNotInPlanError):
            free_client().channel("@tidewater")
        with self.assertRaises(InvalidApiKeyError):
            next(Client(URL, "ctk_wrong").channel_events("@tidewater"))
        with self.assertRaises(LanguageUnavailableError) as other:
            client().video("hl-rope____", languages=["fr"])
        self.assertEqual([one["languageCode"] for one in other.exception.fields["captionTracks"]], ["iw"])


@needs_service
class Work(unittest.TestCase):
    def test_follows_a_job_to_its_end_with_each_entry_once(self) -> None:
        job = client().jobs.create("@7-videos-no-90", limit=6, idempotency_key="python")
        results = list(client(sleep=short).jobs.results(job["id"]))
        self.assertEqual(sorted(one["position"] for one in results), [1, 2, 3, 4, 5, 6])
        finished = client(sleep=short).jobs.wait_for(job["id"])
        self.assertEqual((finished["state"], finished["summary"]["fetched"]), ("completed", 6))
        rest = list(client().jobs.results(job["id"], after=results[3]["cursor"]))
        self.assertEqual([one["videoId"] for one in rest], [one["videoId"] for one in results[4:]])
        self.assertEqual(client().jobs.create("@7-videos-no-90", limit=6, idempotency_key="python")["id"], job["id"])
        with self.assertRaises(IdempotencyConflictError):
            client().jobs.create("@7-videos-no-90", limit=5, idempotency_key="python")
        self.assertIn(job["id"], [one["id"] for one in client().jobs.list()])
        with self.assertRaises(JobFinishedError):
            client().jobs.cancel(job["id"])
        client().jobs.delete(job["id"])

    def test_follows_a_channel_with_a_cursor_from_which_another_loop_goes_on(self) -> None:
        subscription = client().subscriptions.create("@3-videos-no-91", start=2, languages=["fi", "*"])["id"]
        feed = client(sleep=short).follow(subscription)
        first, second = next(feed), next(feed)
        self.assertNotEqual(first["videoId"], second["videoId"])
        again = next(client(sleep=short).follow(subscription, after=first["cursor"]))
        self.assertEqual((again["videoId"], again["cursor"]), (second["videoId"], second["cursor"]))
        body = json.dumps({"channel": "@3-videos-no-91", "count": 1}).encode()
        with urllib.request.urlopen(os.environ["FAKE_YOUTUBE_URL"] + "/fake-youtube/publish", body) as published:
            (video_id,) = json.load(published)["videoIds"]
        client().subscriptions.check(subscription)
        self.assertEqual(next(feed)["videoId"], video_id)
        self.assertEqual(client().subscriptions.change(subscription, state="paused")["reason"], "paused_by_caller")
        self.assertIn(subscription, [one["id"] for one in client().subscriptions.list()])
        client().subscriptions.delete(subscription)
        with self.assertRaises(SubscriptionNotFoundError):
            next(client().follow(subscription))


    def test_reads_the_feed_of_all_subscriptions_with_one_cursor(self) -> None:
        made = [
            client().subscriptions.create(channel, start=1, labels={"team": "python"})["id"]
            for channel in ("@3-videos-no-92", "@3-videos-no-93")
        ]
        feed = client(sleep=short).feed(label="team:python")
        first, second = next(feed), next(feed)
        self.assertEqual({first["subscriptionId"], second["subscriptionId"]}, set(made))
        self.assertEqual(first["labels"], {"team": "python"})
        channel = first["channel"]
        assert channel is not None
        self.assertRegex(str(channel["handle"]), "^@3-videos-no-9[23]$")
        self.assertTrue(first["ok"])
        again = next(client(sleep=short).feed(after=first["cursor"], label="team:python"))
        self.assertEqual((again["videoId"], again["cursor"]), (second["videoId"], second["cursor"]))
        with self.assertRaises(CursorUnknownError) as unknown:
            next(client().feed(after="999999.AAAAAAAA"))
        self.assertIn("oldest", unknown.exception.fields)
        of_feed: List[Any] = list(client().documents(feed=True, label="team:python"))
        self.assertEqual({one["id"][:11] for one in of_feed}, {first["videoId"], second["videoId"]})
        rest: List[Any] = list(client().documents(feed=True, label="team:python", after=first["cursor"]))
        self.assertEqual({one["id"][:11] for one in rest}, {second["videoId"]})
        of_one: List[Any] = list(client().documents(subscription=second["subscriptionId"]))
        self.assertEqual([one["id"] for one in of_one], [one["id"] for one in rest])
        self.assertEqual(of_feed[-1]["cursor"], second["cursor"])
        for subscription in made:
            client().subscriptions.delete(subscription)

    def test_follows_a_playlist(self) -> None:
        made = client().subscriptions.create(playlist=os.environ["PLAYLIST"], start=1)
        self.assertTrue(next(client(sleep=short).follow(made["id"]))["ok"])
        playlist = client().subscriptions.get(made["id"])["playlist"]
        assert playlist is not None
        self.assertEqual(playlist["id"], os.environ["PLAYLIST"])
        client().subscriptions.delete(made["id"])


@needs_service
class Kept(unittest.TestCase):
    def test_is_found_to_the_second_listed_and_deleted(self) -> None:
        labels = {"team": "kept"}
        job = client().jobs.create("@tidewater", limit=2, languages=["en"], keep=True, labels=labels)
        self.assertEqual(client(sleep=short).jobs.wait_for(job["id"])["keep"], "on")
        self.assertEqual([(one["id"], one["labels"]) for one in client().jobs.list("team:kept")], [(job["id"], labels)])
        (found,) = client().search('"eight people" pot', channel="@tidewater", label="team:kept", language="en")
        self.assertEqual((found["videoId"], found["url"]), ("tw-chowder_", "https://youtu.be/tw-chowder_?t=0"))
        words = [found["text"][place["from"] : place["to"]] for place in found["matches"]]
        self.assertEqual(words, ["Eight people", "pot"])
        kept = list(client().library.list(label="team:kept"))
        self.assertEqual({one["videoId"] for one in kept}, {"tw-chowder_", "tw-bread___"})
        self.assertEqual(client().usage()["library"]["videos"], 2)
        part: Any = {"channel": "@tidewater", "label": "team:kept", "language": "en"}
        documents: List[Any] = list(client().documents(library=True, chunk_seconds=600, **part))
        self.assertEqual([one["id"] for one in documents], ["tw-chowder_:en:0", "tw-bread___:en:0"])
        rest: List[Any] = list(client().documents(library=True, after=documents[0]["cursor"], **part))
        self.assertEqual({one["metadata"]["videoId"] for one in rest}, {"tw-bread___"})
        client().library.delete("https://youtu.be/tw-chowder_")
        self.assertEqual(list(client().search('"eight people"')), [])
        self.assertEqual(client().library.delete_channel("@tidewater"), 1)
        self.assertEqual(list(client().library.list()), [])

    def test_is_yielded_from_all_pages_of_a_search(self) -> None:
        job = client().jobs.create("@25-videos-no-94", keep=True)
        client(sleep=short).jobs.wait_for(job["id"])
        page = client().call("GET", "/library/search", {"q": "the", "sort": "newest", "limit": 1})
        found = [(one["videoId"], one["start"]) for one in client().search("the", sort="newest")]
        self.assertEqual((len(found), len(set(found))), (page["total"], page["total"]))
        self.assertGreater(page["total"], 25)
        with self.assertRaises(FeatureNotInPlanError):
            next(free_client().search("the"))


@needs_service
class Documents(unittest.TestCase):
    def test_have_an_id_a_text_and_the_place_that_they_come_from(self) -> None:
        documents: List[Any] = list(client().documents(channel="@tidewater", limit=1, languages=["en"]))
        (document,) = documents
        self.assertEqual(document["id"], "tw-chowder_:en:0")
        self.assertTrue(document["text"].startswith("Eight people, one pot"))
        metadata = document["metadata"]
        self.assertEqual(metadata["url"], "https://youtu.be/tw-chowder_?t=0")
        self.assertEqual((metadata["channelName"], metadata["language"]), ("Tidewater Kitchen", "en"))
        self.assertEqual((metadata["start"], metadata["generated"]), (0.24, False))
        self.assertEqual(metadata["title"], "Mussel chowder for eight")
        (same,) = list(client().documents(videos=["tw-chowder_"]))
        self.assertEqual(same["id"], document["id"])

    def test_of_a_job_are_the_same(self) -> None:
        for chunk_seconds in (None, 60):
            job = client().jobs.create(videos=["tw-chowder_", "hl-silent__"], chunk_seconds=chunk_seconds)
            documents: List[Any] = list(client(sleep=short).documents(job=job["id"]))
            by_id = {one["id"]: one for one in documents}
            self.assertEqual(set(by_id), {"tw-chowder_:en:0", "hl-silent__"})
            self.assertEqual(by_id["hl-silent__"]["error"]["code"], "transcript_unavailable")
            self.assertEqual(by_id["tw-chowder_:en:0"]["metadata"]["channelName"], "Tidewater Kitchen")

    def test_have_one_source(self) -> None:
        with self.assertRaisesRegex(TypeError, "exactly one of"):
            client().documents()
        with self.assertRaisesRegex(TypeError, "exactly one of"):
            client().documents(channel="@tidewater", job="job_1")


@needs_service
class FreePlan(unittest.TestCase):
    def test_lists_transcripts_without_charge_and_fetches_each_for_one(self) -> None:
        key = os.environ["CHANNEL_TRANSCRIPTS_FREE_KEY"]
        with mock.patch.dict(os.environ, CHANNEL_TRANSCRIPTS_KEY=key):
            api = YouTubeTranscriptApi()
        found = api.list("hl-nets____")
        self.assertEqual([one.language_code for one in found], ["zh-Hans", "zh-Hant"])
        self.assertEqual(free_client().usage()["used"], 0)
        self.assertEqual(found.find_transcript(["zh-Hant"]).fetch().language_code, "zh-Hant")
        self.assertEqual(free_client().usage()["used"], 1)
