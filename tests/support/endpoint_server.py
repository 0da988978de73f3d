"""A local HTTP server that imitates an OpenAI-compatible endpoint: correct, failing, slow or malformed."""

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def status(code, headers=None, message="no"):
    """Return a behaviour that responds with a status and a JSON error."""

    def behave(handler, request):
        handler.reply(json.dumps({"error": {"message": message}}).encode(), code, headers or {})

    return behave


def raw(data, headers=None, length=None):
    """Return a behaviour that responds 200 with these bytes; `length` overrides the Content-Length."""

    def behave(handler, request):
        handler.reply(data, 200, headers or {}, length)

    return behave


def slow(seconds):
    """Return a behaviour that responds with an empty object after some seconds."""

    def behave(handler, request):
        time.sleep(seconds)
        handler.reply(b"{}", 200, {})

    return behave


def hang_up(handler, request):
    """Close the connection without a response."""
    handler.connection.close()


def text(answer, finish_reason="stop", headers=None):
    """Return a behaviour that responds with a completion or a chat completion, as requested."""

    def behave(handler, request):
        choice = {"index": 0, "finish_reason": finish_reason}
        is_chat = "messages" in request["body"]
        choice |= {"message": {"role": "assistant", "content": answer}} if is_chat else {"text": answer}
        usage = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
        body = {"id": "1", "object": "chat.completion" if is_chat else "text_completion", "created": 1}
        body |= {"model": "m", "choices": [choice], "usage": usage}
        handler.reply(json.dumps(body).encode(), 200, headers or {})

    return behave


def tool_calls(*calls, content=None, finish_reason="tool_calls"):
    """Return a behaviour that responds with a chat completion that calls tools; a call is (name, JSON)."""

    def behave(handler, request):
        parts = [
            {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for i, (name, arguments) in enumerate(calls)
        ]
        message = {"role": "assistant", "content": content, "tool_calls": parts}
        choice = {"index": 0, "finish_reason": finish_reason, "message": message}
        usage = {"prompt_tokens": 70, "completion_tokens": 9, "total_tokens": 79}
        body = {"id": "1", "object": "x", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        handler.reply(json.dumps(body).encode(), 200, {})

    return behave


def streamed(*pieces, finish_reason="stop", is_cut=False):
    """Return a behaviour that streams an answer as server-sent events; of a chat, pieces may be calls.

    A piece is a text, or (index, name, arguments) of a call. A stream that `is_cut` lacks its end.
    """

    def behave(handler, request):
        is_chat = "messages" in request["body"]
        choices = []
        for piece in pieces:
            if isinstance(piece, tuple):
                index, name, arguments = piece
                call = {"index": index, "function": {"name": name, "arguments": arguments}}
                choices.append({"delta": {"tool_calls": [call]}})
            else:
                choices.append({"delta": {"content": piece}} if is_chat else {"text": piece})
        chunks = [{"choices": [{"index": 0, "finish_reason": None, **choice}]} for choice in choices]
        if not is_cut:
            chunks[-1]["choices"][0]["finish_reason"] = finish_reason
            chunks.append({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5}})
        events = [f"data: {json.dumps({'id': '1', 'model': 'm', **chunk})}\n\n" for chunk in chunks]
        data = "".join([*events, "data: [DONE]\n\n" * (not is_cut)]).encode()
        handler.reply(data, 200, {"Content-Type": "text/event-stream"})

    return behave


@dataclass
class Endpoint:
    """A running server.

    Attributes:
        base_url: URL for the client.
        behaviours: One per request; the last one also serves all further requests.
        requests: Path, API key, parsed body and arrival time of every request so far.

    """

    base_url: str
    behaviours: list = field(default_factory=list)
    requests: list = field(default_factory=list)

    @property
    def bodies(self):
        return [request["body"] for request in self.requests]

    @property
    def keys(self):
        return [request["key"] for request in self.requests]


@contextmanager
def serve():
    """Run a server as a context manager that yields its Endpoint."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers["Authorization"].removeprefix("Bearer ")
            with lock:
                request = {"path": self.path, "key": key, "body": body, "at": time.monotonic()}
                endpoint.requests.append(request)
                behave = endpoint.behaviours[min(len(endpoint.requests), len(endpoint.behaviours)) - 1]
            behave(self, request)

        def reply(self, data, code, headers, length=None):
            self.send_response(code)
            headers = {"Content-Type": "application/json", "Content-Length": length or len(data), **headers}
            for name, value in headers.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = True

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *args: None  # clients disconnect on purpose
    endpoint = Endpoint(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
