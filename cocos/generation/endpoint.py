"""Generator for OpenAI-compatible endpoints: Ollama, a vLLM server, Groq, Together and others.

Plain prompts are sent to the completions API, chats to the chat completions API. Transient failures are
retried (see `retry`). A request that keeps failing yields a completion with `error` set and no text.

This module uses no tokenizer. Its transcripts consist of Unicode code points and of two markers: one starts
a message of the user, the other a message of the assistant.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai

from cocos.generation.api_keys import KeyRing
from cocos.generation.interface import Completion
from cocos.generation.retry import RetryPolicy, is_retryable
from cocos.prompts import DONE

USER, ASSISTANT = 0x110000, 0x110001  # just above the largest Unicode code point
STOPPED, LENGTH = {"stop", "eos"}, "length"  # values of finish_reason; Together returns "eos"
FATAL_STATUS = {401, 403, 404}  # a rejected key or an unknown model: no request can succeed
DEFAULT_RETRIES = RetryPolicy()
MAX_RETRIES_TO_CONNECT = 2  # before the first connection; more would only delay the message


class InvalidResponse(Exception):
    """A response with status 200 that contains no usable completion."""


class EndpointGenerator:
    """Generator that sends concurrent requests to an endpoint.

    Args:
        model: Name of the model at the endpoint.
        base_url: URL up to and including `/v1`; None selects OpenAI.
        keys: API keys, used in rotation.
        max_completion_length: Maximum number of tokens per completion.
        concurrency: Maximum number of requests in flight.
        timeout_s: Timeout of one request in seconds.
        retries: Retry policy of every request.

    """

    batch_size: int | None = None
    is_collective: bool = False
    context_length: int | None = None  # endpoints do not state it
    on_tokens: Callable[[int], None] | None = None
    on_text: Callable[[str], None] | None = None

    def __init__(
        self,
        model: str,
        base_url: str | None,
        keys: Sequence[str],
        max_completion_length: int = 512,
        concurrency: int = 8,
        timeout_s: float = 120.0,
        retries: RetryPolicy = DEFAULT_RETRIES,
    ):
        self.model = model
        self.max_completion_length = max_completion_length
        self.concurrency = concurrency
        self.retries = retries
        self.has_connected = False
        self.key_ring = KeyRing(keys)
        # The client's own retries neither switch keys nor recognize invalid responses.
        self.clients = [
            openai.OpenAI(api_key=key, base_url=base_url, timeout=timeout_s, max_retries=0) for key in keys
        ]
        self.url = str(self.clients[0].base_url).rstrip("/")

    def start(self, message: str, is_chat: bool) -> list[int]:
        return [USER, *map(ord, message), ASSISTANT] if is_chat else list(map(ord, message))

    def extend(self, prompt: Sequence[int], completion: Completion, message: str, is_chat: bool) -> list[int]:
        return [*prompt, *completion.kept_ids, *self.start(message, is_chat)]

    def quote(self, text: str) -> Completion:
        return Completion(tuple(map(ord, text)), text)

    def show(self, prompt: Sequence[int]) -> str:
        roles = {USER: "\n[user]\n", ASSISTANT: "\n[assistant]\n"}
        return "".join(roles.get(i) or chr(i) for i in prompt).removeprefix("\n")

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        temperature: float,
        seeds: Sequence[int] | None = None,
    ) -> list[Completion]:
        options: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_completion_length,
            "temperature": temperature,
        }
        requests = [_parse_transcript(prompt) | options for prompt in prompts]
        if seeds is not None and temperature > 0:
            # Endpoints accept 31-bit seeds, but not every endpoint honours them.
            requests = [r | {"seed": seed % 2**31} for r, seed in zip(requests, seeds, strict=True)]
        pool = ThreadPoolExecutor(self.concurrency)
        try:
            return list(pool.map(self._complete_and_count, requests))
        finally:
            # After an exception, do not send the requests that are still queued.
            pool.shutdown(cancel_futures=True)

    def _complete_and_count(self, request: dict[str, Any]) -> Completion:
        completion = self._complete(request)
        if self.on_tokens:
            self.on_tokens(completion.num_completion_tokens or 0)
        return completion

    def _complete(self, request: dict[str, Any]) -> Completion:
        """Send a request until it succeeds; after the last attempt, return a completion with `error` set.

        Raises:
            ValueError: There is no server, it rejects the key, or it does not know the model.

        """
        started = time.perf_counter()
        for attempt in range(self.retries.max_retries + 1):
            key = self.key_ring.acquire()
            status: int | None = None
            headers: Mapping[str, str] = {}
            try:
                return self._send(key, request)
            except (openai.APIError, InvalidResponse) as error:
                # The cause of a connection error is its reason: "Connection error." alone says nothing.
                message = f"{type(error).__name__}: {error.__cause__ or error}"
                if isinstance(error, openai.APIStatusError):
                    status, headers = error.status_code, error.response.headers
                is_connected = not isinstance(error.__cause__, (httpx2.ConnectError, httpx2.ConnectTimeout))
            message = self.key_ring.redact(message)  # some endpoints repeat the key in their errors
            self.has_connected |= is_connected
            if not self.has_connected and attempt >= min(MAX_RETRIES_TO_CONNECT, self.retries.max_retries):
                raise ValueError(
                    f"nothing answers at the endpoint {self.url} ({message}); start its server or check "
                    "--base_url"
                )
            if status in FATAL_STATUS:
                raise ValueError(self._rejection(status, key, "messages" in request, message))
            if attempt == self.retries.max_retries or not is_retryable(status):
                break
            delay_s = self.retries.delay_s(attempt, headers)
            if status == 429:
                # The rate limit belongs to the key: with another key the retry can start at once.
                self.key_ring.cool_down(key, delay_s)
            else:
                time.sleep(delay_s)
        duration_s = time.perf_counter() - started
        return Completion((), "", error=f"endpoint {self.url}: {message}", duration_s=duration_s)

    def _rejection(self, status: int, key: int, is_chat: bool, message: str) -> str:
        """Return the error for a status after which no request can succeed."""
        if status != 404:
            problem, remedy = f"rejected key {key + 1}", "check the key in --api_key_env"
        elif is_chat:
            problem, remedy = f"does not know {self.model!r}", "check --model_name_or_path and --base_url"
        else:  # many endpoints offer chats only
            problem = f"does not know {self.model!r}, or offers no completions API"
            remedy = "check --model_name_or_path and --base_url, or try --protocol chat"
        return f"the endpoint {self.url} {problem}; {remedy}. It answered: {message}"

    def _send(self, key: int, request: dict[str, Any]) -> Completion:
        """Send a request once and parse the response.

        Raises:
            openai.APIError: There is no response, or its status is not 200.
            InvalidResponse: The response contains no usable completion.

        """
        started = time.perf_counter()
        client = self.clients[key]
        is_chat = "messages" in request
        api = client.chat.completions if is_chat else client.completions
        response = api.with_raw_response.create(**request)
        self.has_connected = True
        self.key_ring.cool_down(key, self.retries.cool_down_s(response.headers))
        try:
            # The client does not validate the JSON, so a missing field raises only when it is read.
            parsed = response.parse()
            choice, usage = parsed.choices[0], parsed.usage
            text = choice.message.content if is_chat else choice.text
            is_cut_off = choice.finish_reason == LENGTH
            if not is_cut_off and (text is None or choice.finish_reason not in STOPPED):
                raise ValueError(f"finish_reason is {choice.finish_reason!r}")
            text = _restore_stop_string(text or "", may_have_stopped=not is_chat and not is_cut_off)
            counts = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
        except (ValueError, AttributeError, TypeError, LookupError) as error:
            raise InvalidResponse(f"invalid response: {error}") from None
        return Completion(
            token_ids=tuple(map(ord, text)),
            text=text,
            is_truncated=is_cut_off and DONE not in text,
            duration_s=time.perf_counter() - started,
            num_prompt_tokens=counts[0],
            num_completion_tokens=counts[1],
        )


def _parse_transcript(prompt: Sequence[int]) -> dict[str, Any]:
    """Return the messages of a chat, or the plain prompt with [DONE] as its stop string."""
    if prompt[0] != USER:
        return {"prompt": "".join(map(chr, prompt)), "stop": [DONE]}
    messages: list[dict[str, str]] = []
    for i in prompt:
        if i in (USER, ASSISTANT):
            messages.append({"role": "user" if i == USER else "assistant", "content": ""})
        else:
            messages[-1]["content"] += chr(i)
    return {"messages": messages[:-1]}  # the last one is the assistant's empty message, to be generated


def _restore_stop_string(text: str, may_have_stopped: bool) -> str:
    """Return the text up to [DONE], and append [DONE] if the endpoint removed it.

    Endpoints omit the stop string. [DONE] has its own line, so a text that does not end with a line end was
    stopped by an end-of-sequence token instead.
    """
    before, done, _ = text.partition(DONE)
    return before + DONE if done or (may_have_stopped and text.endswith("\n")) else text
