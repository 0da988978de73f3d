"""Requests between the candidate's process and the judge during one judged test.

Each process may send a request while it answers one of the other: a test calls the candidate's function,
which calls a function of the test. A request names an operation and an object of the other process:

    ["q", [operation, object, argument, ...], [names of the keyword arguments], ...]
    ["v", [result], [], ...]  or  ["e", [exception], [], ...]                          the answer

The operation is a special method, as in "__call__", or "getattr", "setattr", ... The rest of a message is
described in `object_encoder.py`.
"""

import _thread  # not `threading`: its hook in every fork touches 130 pages that are shared with the zygote
import copy
from typing import Any

import judge_channel
from object_decoder import ObjectDecoder
from object_encoder import ObjectEncoder
from remote_classes import connect

_FUNCTIONS: dict[str, Any] = {
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


class Conversation(ObjectEncoder, ObjectDecoder):
    """One end of the conversation. All proxies of this process send their requests through the newest one."""

    def __init__(self, first_id: int) -> None:
        super().__init__(first_id)
        self._turn = _thread.RLock()  # held from a request to its answer: the program may have threads
        connect(self)

    # The two ends differ in the methods down to `perform`.

    def forward(self, operation: str, target: Any, args: tuple, kwargs: dict) -> Any:
        """Answer an operation on a proxy."""
        return self.request(operation, target, args, kwargs)

    def compare_identity(self, proxy: Any, other: Any) -> Any:
        """Answer `proxy == other` where the proxy's class has no `__eq__`."""
        return NotImplemented

    def truth_of_length(self, proxy: Any) -> bool:
        """Answer `bool(proxy)` where the proxy's class has a length and no `__bool__`."""
        return len(proxy) != 0

    def cannot(self, action: str) -> None:
        """End an operation that proxies do not support."""
        raise TypeError(f"not supported here: {action}")

    def returned(self, operation: str, error: Any) -> BaseException:
        """Return the exception to raise where the answer to a request is an exception."""
        return error

    def perform(self, operation: str, target: Any, args: tuple, kwargs: dict) -> Any:
        """Do what the other process requests with an object of this process."""
        if function := _FUNCTIONS.get(operation):
            return function(target, *args)
        return getattr(type(target), operation)(target, *args, **kwargs)

    def request(self, operation: str, target: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Have the other process do something and return the result, or raise the exception."""
        with self._turn:
            kwargs = kwargs or {}
            self.send("q", (operation, target, *args, *kwargs.values()), tuple(kwargs))
            while True:
                kind, values, names = self.receive()
                if kind == "v":
                    return values[0]
                if kind == "e":
                    raise self.returned(operation, values[0])
                self.answer(values, names)

    def answer(self, values: list, names: list) -> None:
        """Perform a request and send the result."""
        operation, target, *args = values
        split = len(args) - len(names)
        try:
            result = self.perform(
                operation, target, tuple(args[:split]), dict(zip(names, args[split:], strict=True))
            )
        except BaseException as error:
            self.send("e", (error,))
        else:
            self.send("v", (result,))

    def send(self, kind: str, values: tuple, names: tuple = ()) -> None:
        first = self._next_id
        message = self.encode_message(kind, values, names)
        try:
            judge_channel.send(message)
        except judge_channel.MessageTooLarge:
            self.retract(first)
            raise

    def receive(self) -> tuple[str, list, list]:
        return self.decode_message(judge_channel.receive())
