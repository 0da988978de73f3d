"""A hub on this machine: it answers the requests with which huggingface_hub uploads a folder, and keeps the files."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "hf_good"


@dataclass
class Hub:
    """What the hub has received, and how it answers."""

    url: str = ""
    repositories: list[dict] = field(default_factory=list)  # requests to create one
    files: dict[str, bytes] = field(default_factory=dict)  # path in the repository -> content
    status: int = 200  # of the answers to requests for a data set and for a commit


@contextmanager
def hub_server() -> Iterator[Hub]:
    """Yield a hub that serves until the block ends."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def answer(self, value: object, status: int = 200) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            if self.path != "/api/whoami-v2":
                self.answer({"error": "the data set is not here"}, 404 if hub.status == 200 else hub.status)
            elif self.headers["Authorization"] == f"Bearer {TOKEN}":
                self.answer({"name": "owner", "type": "user"})
            else:
                self.answer({"error": "Invalid username or password."}, 401)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/api/repos/create":
                hub.repositories.append(json.loads(body))
                self.answer({"url": f"{hub.url}/datasets/owner/name"})
            elif "/preupload/" in self.path:
                paths = [file["path"] for file in json.loads(body)["files"]]
                self.answer(
                    {"files": [{"path": p, "uploadMode": "regular", "shouldIgnore": False} for p in paths]}
                )
            elif "/commit/" not in self.path:
                self.answer({"errors": [], "warnings": []})  # the header of README.md is in order
            elif hub.status != 200:
                self.answer({"error": "out of order"}, hub.status)
            else:
                for line in map(json.loads, body.splitlines()):
                    if line["key"] == "file":
                        hub.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
                commit = f"{hub.url}/datasets/owner/name/commit/{'0' * 40}"
                self.answer({"commitUrl": commit, "commitOid": "0" * 40, "hookOutput": ""})

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
