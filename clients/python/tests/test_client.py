import json
import pickle
import threading
import traceback
import unittest
from pathlib import Path
from typing import Any, Dict, List

from channel_transcripts import _types
from channel_transcripts import (
    ChannelTranscriptsError,
    Client,
    NoResponseError,
    PlanLimitExceededError,
    RateLimitedError,
    ResultsExpiredError,
    UnexpectedResponseError,
)
from scripted import KEY, LOST, Answer, Call, ScriptedService, Sent, answer, lines, refusal

DOCUMENT = Path(__file__).parents[3] / "tools/openapi/openapi.json"
ENTRY = {"videoId": "tw-chowder_", "ok": True, "metadata": {}, "transcript": {}, "cached": False}
CHANNEL = {"type": "channel", "channel": {"id": "UC1", "name": "Tidewater Kitchen", "handle": "@tidewater"}}
RESULT = {"type": "result", "result": ENTRY}
SUMMARY = {"type": "summary", "summary": {"total": 1}}
JOB_END = {"type": "summary", "summary": {}, "next": None, "job": {}}
PROXY_PAGE = Answer(b"<h1>Bad gateway</h1>", 502, {"Content-Type": "text/html"})

CHARGED: Dict[str, Call] = {
    "channel": lambda client: client.channel("@tidewater"),
    "channel_events": lambda client: list(client.channel_events("@tidewater")),
    "playlist": lambda client: client.playlist("PLsaturday"),
    "videos": lambda client: client.videos(["tw-chowder_"]),
    "video": lambda client: client.video("tw-chowder_"),
    "video_as": lambda client: client.video_as("srt", "tw-chowder_"),
    "documents": lambda client: list(client.documents(channel="@tidewater")),
}
FREE: Dict[str, Call] = {
    "usage": lambda client: client.usage(),
    "uploads": lambda client: client.uploads("@tidewater"),
    "search": lambda client: list(client.search("tide")),
    "library.list": lambda client: list(client.library.list()),
    "documents of the library": lambda client: list(client.documents(library=True)),
    "documents of the feed": lambda client: list(client.documents(feed=True)),
    "jobs.get": lambda client: client.jobs.get("job_1"),
    "jobs.create": lambda client: client.jobs.create("@tidewater"),
    "subscriptions.create": lambda client: client.subscriptions.create("@tidewater"),
}


class Calls(unittest.TestCase):
    def test_send_what_they_are_given_encoded(self) -> None:
        url = "https://www.youtube.com/@tidewater/videos?view=0"
        with ScriptedService(answer({"results": []})) as service:
            client = service.client()
            client.channel(url, limit=3, languages=["en", "de"], kinds=["video"], since="tw-bread___")
            client.videos(["a", "b"], languages="fr", chunk_seconds=60)
            client.jobs.create(videos=("a", "b"), idempotency_key="mine")
        first, second, third = service.sent
        self.assertEqual(
            (first.method, first.path),
            (
                "GET",
                "/channels/https%3A%2F%2Fwww.youtube.com%2F%40tidewater%2Fvideos%3Fview%3D0/transcripts"
                "?limit=3&kinds=video&since=tw-bread___&languages=en%2Cde",
            ),
        )
        self.assertEqual(first.headers["Authorization"], f"Bearer {KEY}")
        self.assertEqual(second.body, {"videos": ["a", "b"], "languages": "fr", "chunkSeconds": 60})
        self.assertEqual((third.body, third.headers["Idempotency-Key"]), ({"videos": ["a", "b"]}, "mine"))

    def test_send_only_parameters_that_the_document_has(self) -> None:
        texts: Dict[str, Any] = {"languages": ["en"], "match": "first", "include": ["tags"], "chunk_seconds": 60}
        library = {"channel": "x", "label": "a:b", "language": "en", "published_after": "2026-01-01"}
        calls: Dict[str, Call] = {
            "get /channels/{id}/transcripts": lambda client: client.channel(
                "x", limit=1, kinds=["video"], since="y", **texts
            ),
            "get /channels/{id}/uploads": lambda client: client.uploads("x", limit=1, kinds=["video"], since="y"),
            "get /playlists/{id}/transcripts": lambda client: client.playlist("x", limit=1, kinds=["video"], **texts),
            "post /transcripts": lambda client: client.videos(["x"], **texts),
            "get /videos/{id}/transcript": lambda client: client.video("x", **texts),
            "post /jobs": lambda client: client.jobs.create(
                "x", limit=1, since="y", on_quota="fail", kinds=["video"], labels={}, keep=True, **texts
            ),
            "post /subscriptions": lambda client: client.subscriptions.create(
                playlist="x", check_minutes=60, start=1, kinds=["video"], labels={}, keep=True, **texts
            ),
            "patch /jobs/{id}": lambda client: client.jobs.change("x", keep=True),
            "get /jobs": lambda client: list(client.jobs.list(label="a:b")),
            "get /library/search": lambda client: list(client.search("x", sort="newest", **library)),
            "get /library/videos": lambda client: list(client.library.list(**library)),
            "delete /library/videos/{id}": lambda client: client.library.delete("x"),
            "delete /library": lambda client: client.library.delete_channel("x"),
            "get /subscriptions/{id}/results": lambda client: list(
                client.documents(subscription="x", limit=1, after="y", chunk_seconds=60)
            ),
            "get /feed": lambda client: list(client.documents(feed=True, channel="x", label="a:b", after="y")),
        }
        page = answer({"videos": [], "results": [], "jobs": [], "next": None})
        other = {"delete /library": answer({"videos": 1})}
        other.update({name: lines() for name in ("get /feed", "get /subscriptions/{id}/results")})
        document = json.loads(DOCUMENT.read_text())
        for name, call in calls.items():
            method, path = name.split(" ")
            operation = document["paths"][path][method]
            known = {one["name"] for one in operation.get("parameters", [])}
            if "requestBody" in operation:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].split("/")[-1]
                known |= set(document["components"]["schemas"][schema]["properties"])
            with ScriptedService(other.get(name, page)) as service:
                call(service.client())
            (sent,) = service.sent
            query = [pair.split("=")[0] for pair in sent.path.partition("?")[2].split("&") if pair]
            self.assertEqual(sent.path.partition("?")[0], path.replace("{id}", "x"))
            self.assertLessEqual(set(query) | set(sent.body or {}), known, name)

    def test_are_refused_before_any_request_without_showing_the_key(self) -> None:
        url = "http://localhost:3000"
        for key in ("", "ctk_hunter2\n", "ctk_hunter2\r\nX: y", " ctk_hunter2", "ctk_hunter2ü"):
            with self.assertRaises(ValueError) as raised:
                Client(url, key)
            self.assertNotIn("hunter2", str(raised.exception))
        for wrong in ("ctk_hunter2", "http://me:hunter2@localhost", "localhost:3000", "ftp://localhost", url + "?a"):
            with self.assertRaisesRegex(ValueError, "^base_url must be") as raised:
                Client(wrong, "ctk_x")
            self.assertNotIn("hunter2", str(raised.exception))

    def test_reach_a_service_below_a_path(self) -> None:
        with ScriptedService(answer({})) as service:
            Client(service.url + "/transcripts/", KEY).usage()
        self.assertEqual(service.sent[0].path, "/transcripts/usage")


class Types(unittest.TestCase):
    def test_of_responses_have_the_fields_that_the_document_has(self) -> None:
        schemas = json.loads(DOCUMENT.read_text())["components"]["schemas"]
        checked = 0
        for name, schema in schemas.items():
            of_name = getattr(_types, {"VideoMetadata": "Metadata", "FeedVideoTranscript": "FeedVideo"}.get(name, name), None)
            if of_name is not None:
                # That of an entry is beside it in its line.
                of_line = set() if "Document" in name else {"cursor"}
                self.assertEqual(set(of_name.__annotations__) - of_line, set(schema["properties"]), name)
                checked += 1
        self.assertGreater(checked, 25)


class Failures(unittest.TestCase):
    def test_are_exceptions_by_code_with_what_the_service_says(self) -> None:
        fields: Dict[str, Any] = {"limit": 1, "used": 1, "required": 3, "resetAt": "2026-12-01T00:00:00.000Z"}
        with ScriptedService(refusal(402, "plan_limit_exceeded", **fields)) as service:
            with self.assertRaises(PlanLimitExceededError) as raised:
                service.client().channel("@tidewater")
        error = raised.exception
        self.assertEqual((error.status, error.code, error.retryable), (402, "plan_limit_exceeded", False))
        self.assertEqual((error.request_id, error.retry_after), ("request-1", None))
        self.assertEqual(error.docs, f"{service.url}/docs/errors#plan_limit_exceeded")
        self.assertEqual((error.fields, str(error)), (fields, "Refused: plan_limit_exceeded."))
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(copy), copy.code, copy.fields), (PlanLimitExceededError, error.code, fields))

    def test_with_a_code_of_a_later_version_have_the_base_class(self) -> None:
        with ScriptedService(refusal(410, "of_tomorrow")) as service:
            with self.assertRaises(ChannelTranscriptsError) as raised:
                service.client().usage()
        self.assertEqual((type(raised.exception), raised.exception.code), (ChannelTranscriptsError, "of_tomorrow"))

    def test_have_a_class_for_each_code_of_the_document(self) -> None:
        codes = json.loads(DOCUMENT.read_text())["components"]["schemas"]["Error"]["properties"]["code"]["enum"]
        self.assertEqual([code for code in codes if code not in ChannelTranscriptsError._classes], [])

    def test_that_pass_are_repeated_not_before_their_retry_after(self) -> None:
        for name, call in {**CHARGED, **FREE}.items():
            unavailable = refusal(503, "service_unavailable", True, retryAfterSeconds=7)
            limited = refusal(429, "rate_limited", True)
            with ScriptedService(unavailable, limited, refusal(404, "x")) as service:
                with self.assertRaises(ChannelTranscriptsError) as raised:
                    call(service.client())
            self.assertEqual((name, raised.exception.status), (name, 404))
            self.assertEqual((name, len(service.sent), service.pauses), (name, 3, [7, 4]))

    def test_are_raised_after_the_last_retry(self) -> None:
        with ScriptedService(refusal(429, "rate_limited", True, retryAfterSeconds=3)) as service:
            with self.assertRaises(RateLimitedError) as raised:
                service.client().usage()
        self.assertEqual((len(service.sent), raised.exception.retry_after), (3, 3))

    def test_that_ask_for_a_long_pause_are_left_to_the_caller(self) -> None:
        with ScriptedService(refusal(503, "upstream_busy", True, retryAfterSeconds=600)) as service:
            with self.assertRaises(ChannelTranscriptsError):
                service.client().channel("@tidewater")
        self.assertEqual((len(service.sent), service.pauses), (1, []))

    def test_without_an_answer_are_repeated_only_when_the_call_costs_nothing(self) -> None:
        for step, kind in ((LOST, NoResponseError), (PROXY_PAGE, UnexpectedResponseError)):
            with ScriptedService(step) as service:
                for calls, times in ((CHARGED, 1), (FREE, 3)):
                    for name, call in calls.items():
                        service.sent.clear()
                        with self.assertRaises(kind):
                            call(service.client())
                        self.assertEqual((name, len(service.sent)), (name, times))

    def test_name_the_address_and_the_cause_and_never_the_key(self) -> None:
        redirect = Answer(b"", 301, {"Location": "https://other.example/usage"})
        login = Answer(b"<h1>Welcome</h1>", 200, {"Content-Type": "text/html"})
        half = Answer(b'{"used": 12', 200, {"Content-Type": "application/json"})
        for step in (LOST, PROXY_PAGE, redirect, login, half, refusal(401, "invalid_api_key")):
            with ScriptedService(step) as service:
                try:
                    service.client(retries=0).usage()
                    self.fail("The call was not refused.")
                except ChannelTranscriptsError as error:
                    shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
                    self.assertNotIn("hunter2", shown + repr(error) + repr(vars(error)))
                    if error.status != 401:
                        self.assertIn(f"GET {service.url}/usage", error.message)

    def test_of_a_service_that_is_not_there_have_no_status(self) -> None:
        with ScriptedService(answer({})) as service:
            url = service.url
        with self.assertRaisesRegex(NoResponseError, f"^GET {url}/usage: .*refused") as raised:
            Client(url, KEY, retries=0).usage()
        self.assertEqual((raised.exception.status, raised.exception.retryable), (None, True))

    def test_of_a_silent_connection_are_raised_after_the_timeout(self) -> None:
        ended = threading.Event()

        def silent(sent: Sent) -> Answer:
            ended.wait()
            return LOST

        with ScriptedService(silent) as service:
            try:
                with self.assertRaisesRegex(NoResponseError, "timed out"):
                    service.client(retries=0, timeout=0.05).usage()
            finally:
                ended.set()

    def test_never_take_the_key_to_another_address(self) -> None:
        with ScriptedService(answer({})) as other:
            for status in (301, 302, 303, 307, 308):
                with ScriptedService(Answer(b"", status, {"Location": other.url + "/usage"})) as service:
                    with self.assertRaisesRegex(UnexpectedResponseError, f"redirects to '{other.url}/usage'"):
                        service.client().usage()
                self.assertEqual((len(service.sent), other.sent), (1, []))


class Streams(unittest.TestCase):
    def test_yield_the_events_and_skip_types_of_later_versions(self) -> None:
        for packed in (False, True):
            with ScriptedService(lines(CHANNEL, {"type": "of_tomorrow"}, RESULT, SUMMARY, packed=packed)) as service:
                events = list(service.client().channel_events("@tidewater"))
            self.assertEqual(events, [CHANNEL, RESULT, SUMMARY])
            self.assertEqual(service.sent[0].headers["Accept"], "application/x-ndjson")

    def test_that_were_cut_off_raise_whatever_was_read(self) -> None:
        cuts = []
        for packed in (False, True):
            whole = lines(CHANNEL, RESULT, SUMMARY, packed=packed)
            size = len(whole.body)
            for kept in (*range(0, size, 7), size - 2, size - 1):
                # The connection is lost, or a proxy passes a part on as the whole.
                cuts += [whole._replace(cut=kept), whole._replace(body=whole.body[:kept])]
        with ScriptedService(*cuts) as service:
            for cut in cuts:
                with self.assertRaises(NoResponseError, msg=str(cut)):
                    list(service.client().channel_events("@tidewater"))

    def test_that_were_cut_off_are_no_short_result_of_other_calls(self) -> None:
        text = Answer(b"1\n00:00:00,240 --> ", 200, {"Content-Type": "application/x-subrip", "Content-Length": "200"})
        with ScriptedService(text) as service, self.assertRaises(NoResponseError):
            service.client().video_as("srt", "tw-chowder_")
        page = answer({"results": []})
        with ScriptedService(page._replace(cut=5)) as service, self.assertRaises(NoResponseError):
            service.client().videos(["tw-chowder_"])

    def test_of_something_else_than_the_service_raise(self) -> None:
        with ScriptedService(Answer(b"<h1>Welcome</h1>", 200, {"Content-Type": "text/html"})) as service:
            with self.assertRaises(UnexpectedResponseError) as raised:
                list(service.client().channel_events("@tidewater"))
        self.assertFalse(raised.exception.retryable)


class Following(unittest.TestCase):
    def end(self, next: Any, **fields: Any) -> Dict[str, Any]:
        summary = {"total": 0, "pending": 0}
        return {"type": "summary", "summary": summary, "next": next, "subscription": {"summary": summary, **fields}}

    def entry(self, cursor: Any, **more: Any) -> Dict[str, Any]:
        return {**RESULT, "cursor": cursor, **more}

    def test_yields_each_entry_once_with_its_cursor_whatever_that_is(self) -> None:
        for first, second in ((1, 2), ("1.aB3_xY9-", "2.qWeRtYui")):
            none = lines(self.end(second, nextCheckAt=None))
            pages = [lines(self.entry(first), self.end(first)), none, lines(self.entry(second), self.end(second))]
            with ScriptedService(*pages) as service:
                feed = service.client().follow("sub_1", after=0)
                read = [next(feed), next(feed)]
            self.assertEqual([one["cursor"] for one in read], [first, second])
            self.assertEqual(read[0]["videoId"], "tw-chowder_")
            self.assertEqual(service.pauses, [300])
            after = [one.path.split("after=")[1].split("&")[0] for one in service.sent]
            self.assertEqual(after, ["0", str(first), str(second)])

    def test_repeats_a_read_that_was_cut_off_without_repeating_an_entry(self) -> None:
        page = lines(self.entry(1), self.entry(2), self.end(2))
        with ScriptedService(page._replace(cut=len(page.body) - 9), LOST, page) as service:
            feed = service.client().follow("sub_1")
            self.assertEqual([next(feed)["cursor"], next(feed)["cursor"]], [1, 2])
        self.assertEqual((len(service.sent), service.pauses), (3, [2, 4]))

    def test_of_the_feed_has_the_subscription_and_labels_of_each_entry(self) -> None:
        labels = {"user": "42"}
        page = lines(
            self.entry("1.a", subscriptionId="sub_1", labels=labels, channel=CHANNEL["channel"]),
            {"type": "summary", "next": "1.a"},
        )
        with ScriptedService(page, lines({"type": "summary", "next": "1.a"}), page) as service:
            feed = service.client().feed(label="user:42")
            entry = next(feed)
            next(feed)
        self.assertEqual((entry["subscriptionId"], entry["labels"], entry["cursor"]), ("sub_1", labels, "1.a"))
        self.assertEqual(service.sent[0].path, "/feed?label=user%3A42&limit=100")
        self.assertEqual(service.pauses, [60])

    def test_of_documents_of_what_is_stored_goes_on_after_their_cursor(self) -> None:
        document = {"id": "tw-chowder_:en:0", "text": "Eight people", "metadata": {}, "cursor": "1.a"}
        with ScriptedService(lines(document)) as service:
            client = service.client()
            (read,) = client.documents(subscription="sub_1")
            list(client.documents(feed=True, label="user:42", after=read.get("cursor")))
            with self.assertRaisesRegex(TypeError, "exactly one of"):
                client.documents(feed=True, job="job_1")
        self.assertEqual(read, document)
        paths = ["/subscriptions/sub_1/results?as=documents", "/feed?as=documents&after=1.a&label=user%3A42"]
        self.assertEqual([one.path for one in service.sent], paths)

    def test_says_where_one_can_go_on_when_entries_expired(self) -> None:
        with ScriptedService(refusal(410, "results_expired", oldest="7.b")) as service:
            with self.assertRaises(ResultsExpiredError) as raised:
                next(service.client().follow("sub_1", after="1.a"))
        self.assertEqual(raised.exception.fields["oldest"], "7.b")

    def test_of_a_job_ends_with_the_job(self) -> None:
        running: Dict[str, Any] = {**JOB_END, "next": "1.a", "job": {"checkAgainSeconds": 2}}
        pages = [lines(self.entry("1.a", position=4), running), lines(running), lines(JOB_END)]
        with ScriptedService(*pages) as service:
            (entry,) = service.client().jobs.results("job_1")
        self.assertEqual((entry["cursor"], entry["position"], service.pauses), ("1.a", 4, [2]))
        paths = ["/jobs/job_1/results?limit=100", *2 * ["/jobs/job_1/results?after=1.a&limit=100"]]
        self.assertEqual([one.path for one in service.sent], paths)


class Lists(unittest.TestCase):
    def test_yield_the_items_of_all_pages(self) -> None:
        pages: List[List[str]] = [["a", "b"], [], ["c"]]

        def page(sent: Sent) -> Answer:
            index = int(sent.path.partition("after=")[2] or 0)
            jobs = [{"id": id} for id in pages[index]]
            return answer({"jobs": jobs, "next": str(index + 1) if index + 1 < len(pages) else None})

        with ScriptedService(page) as service:
            self.assertEqual([job["id"] for job in service.client().jobs.list()], ["a", "b", "c"])
