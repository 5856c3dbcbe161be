"""A service that answers with one step after another, of which the last is repeated."""

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Type

from channel_transcripts import Client

KEY = "ctk_hunter2"


class Sent(NamedTuple):
    method: str
    path: str
    headers: Dict[str, str]
    body: Any


class Answer(NamedTuple):
    body: bytes
    status: int = 200
    headers: Dict[str, str] = {}
    #: Bytes of the body that are sent before the connection is lost; all by default.
    cut: Optional[int] = None


def answer(value: Any, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(json.dumps(value).encode(), status, {"Content-Type": "application/json", **named})


def refusal(status: int, code: str, retryable: bool = False, **fields: Any) -> Answer:
    error = {"code": code, "message": f"Refused: {code}.", "retryable": retryable, "requestId": "request-1"}
    return answer({"error": {**error, "docs": f"/docs/errors#{code}", **fields}}, status)


def lines(*values: Any, cut: Optional[int] = None, packed: bool = False) -> Answer:
    body = "".join(json.dumps(value) + "\n" for value in values).encode()
    headers = {"Content-Type": "application/x-ndjson", **({"Content-Encoding": "gzip"} if packed else {})}
    return Answer(gzip.compress(body) if packed else body, 200, headers, cut)


#: The connection ends before an answer.
LOST = Answer(b"", cut=0, status=0)


class ScriptedService:
    def __init__(self, *steps: Any) -> None:
        self.steps: List[Any] = list(steps)
        self.sent: List[Sent] = []
        self.pauses: List[float] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                size = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(size)) if size else None
                sent = Sent(self.command, self.path, dict(self.headers.items()), body)
                service.sent.append(sent)
                step = service.steps.pop(0) if len(service.steps) > 1 else service.steps[0]
                given = step(sent) if callable(step) else step
                self.close_connection = True
                if given.status == 0:
                    return
                self.send_response(given.status)
                for name, value in {"Content-Length": str(len(given.body)), **given.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(given.body[: given.cut])

            do_GET = do_POST = do_PATCH = do_DELETE = _answer

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(0.01))

    def client(self, **options: Any) -> Client:
        return Client(self.url, KEY, sleep=self.pauses.append, **options)

    def __enter__(self) -> "ScriptedService":
        self._thread.start()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


Call = Callable[[Client], Any]
