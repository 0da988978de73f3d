"""Generator for OpenAI-compatible endpoints: Ollama, a vLLM server, Groq, Together and others.

Plain prompts are sent to the completions API, chats to the chat completions API. Transient failures are
retried (see `retry`). A request that keeps failing yields a completion with `error` set and no text.

This module uses no tokenizer. Its transcripts consist of Unicode code points and of markers, each of which
starts the message of a role; the tools of a chat stand before its messages, as JSON.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import httpx2
import openai

from cocos.generation.interface import Completion, Role, TextTranscripts, encodable
from cocos.generation.retry import KeyRing, RetryPolicy, is_retryable
from cocos.generation.tool_calls import OPENING, format_tool_call, parse_tool_calls
from cocos.prompts import DONE

# Just above the largest Unicode code point.
USER, ASSISTANT, SYSTEM, TOOL, TOOLS = range(0x110000, 0x110005)
ROLES = {USER: "user", ASSISTANT: "assistant", SYSTEM: "system", TOOL: "tool", TOOLS: "tools"}
# Values of finish_reason, in lower case. Every other one, and none at all, ends an answer: endpoints have
# their own words for that, as "eos", "end_turn" or "stop_sequence".
LENGTH, FAILED = {"length", "max_tokens", "model_length"}, {"error"}
FATAL_STATUS = {401, 403, 404}  # a rejected key or an unknown model: no request can succeed
DEFAULT_RETRIES = RetryPolicy()
# Servers of checkpoints apply the checkpoint's own truncation and penalty to requests without these values,
# greedy ones included. top_p is part of OpenAI's interface, the other two are extensions of it.
EXTENSIONS: dict[str, float] = {"top_k": -1, "repetition_penalty": 1.0}
REFUSED_STATUS = {400, 422}  # an unknown field, or a value out of range
MAX_RETRIES_OF_INVALID = 2  # of a response that has no usable completion: most servers repeat it
MAX_RETRIES_TO_CONNECT = 2  # before the first connection; more would only delay the message
SILENCE_S = 10.0  # without a first answer, after which the user is told


class InvalidResponse(Exception):
    """A response with status 200 that contains no usable completion."""


class NotAnEndpoint(InvalidResponse):
    """A web page in place of JSON: a wrong address, or a login."""


class EndpointGenerator(TextTranscripts):
    """Generator that sends concurrent requests to an endpoint.

    Args:
        base_url: URL up to and including `/v1`; None selects OpenAI.
        keys: API keys, used in rotation; none for a server that needs no key.
        say: Prints a line while the endpoint keeps the user waiting.
        chat_template_kwargs: Variables of the server's chat template; None: the request names none.

    """

    def __init__(
        self,
        model: str,
        base_url: str | None,
        keys: Sequence[str],
        max_completion_length: int = 512,
        concurrency: int = 8,
        timeout_s: float = 120.0,
        retries: RetryPolicy = DEFAULT_RETRIES,
        say: Callable[[str], None] = print,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ):
        self.model = model
        self.max_completion_length = max_completion_length
        self.concurrency = concurrency
        self.retries = retries
        self.timeout_s = timeout_s
        self.say = say
        self.chat_template = {"chat_template_kwargs": chat_template_kwargs} if chat_template_kwargs else {}
        self.has_connected = self.has_answered = False  # an answer is JSON
        self.sends_extensions = True
        self.has_keys = bool(keys)
        self.key_ring = KeyRing(keys or ["none"])  # the client needs one even if the server ignores it
        # The client's own retries neither switch keys nor recognize invalid responses.
        self.clients = [
            openai.OpenAI(api_key=key, base_url=base_url, timeout=timeout_s, max_retries=0)
            for key in self.key_ring.keys
        ]
        self.url = str(self.clients[0].base_url).rstrip("/")
        self.remedy = "check --base_url" if base_url else "check the network, or give --base_url"

    def start(
        self, message: str, is_chat: bool, system: str = "", tools: Sequence[dict[str, Any]] = ()
    ) -> list[int]:
        message, system = encodable(message), encodable(system)
        if not is_chat:
            return list(map(ord, message))
        prompt = [TOOLS, *map(ord, json.dumps(tools))] if tools else []
        if system:
            prompt += [SYSTEM, *map(ord, system)]
        return [*prompt, USER, *map(ord, message), ASSISTANT]

    def extend(
        self, prompt: Sequence[int], completion: Completion, message: str, is_chat: bool, role: Role = "user"
    ) -> list[int]:
        answered = [*prompt, *completion.kept_ids]
        if role == "tool":
            return [*answered, TOOL, *map(ord, encodable(message)), ASSISTANT]
        return [*answered, *self.start(message, is_chat)]

    def show(self, prompt: Sequence[int]) -> str:
        return "".join(f"\n[{ROLES[i]}]\n" if i in ROLES else chr(i) for i in prompt).removeprefix("\n")

    def generate(
        self, prompts: Sequence[Sequence[int]], temperature: float, seeds: Sequence[int] | None = None
    ) -> list[Completion]:
        options: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_completion_length,
            "temperature": temperature,
            "top_p": 1.0,
        }
        if self.on_text and len(prompts) == 1:  # somebody reads along
            options |= {"stream": True, "stream_options": {"include_usage": True}}
        requests = [_parse_transcript(prompt) | options for prompt in prompts]
        if seeds is not None and temperature > 0:
            # Endpoints accept 31-bit seeds, but not every endpoint honours them.
            requests = [r | {"seed": seed % 2**31} for r, seed in zip(requests, seeds, strict=True)]
        pool = ThreadPoolExecutor(self.concurrency)
        silence = threading.Timer(SILENCE_S, self._tell_silence)
        silence.daemon = True
        silence.start()
        try:
            return list(pool.map(self._complete_and_count, requests))
        finally:
            silence.cancel()
            # After an exception, do not send the requests that are still queued.
            pool.shutdown(cancel_futures=True)

    def _tell_silence(self) -> None:
        if not self.has_answered:
            self.say(
                f"{self.url} has given no answer for {SILENCE_S:.0f} s; each request waits up to "
                f"{self.timeout_s:.0f} s. If it never answers, {self.remedy}"
            )

    def _complete_and_count(self, request: dict[str, Any]) -> Completion:
        completion = self._complete(request)
        self.progress.add(completion.num_completion_tokens or 0, 1)
        return completion

    def _complete(self, request: dict[str, Any]) -> Completion:
        """Send a request until it succeeds; after the last attempt, return a completion with `error` set."""
        started = time.perf_counter()
        for attempt in range(self.retries.max_retries + 1):
            key = self.key_ring.acquire()
            try:
                return self._send_with_extensions(key, request)
            except (openai.APIError, InvalidResponse) as error:
                fault = error
            message, status, requested_s = self._message(fault), None, None
            if isinstance(fault, openai.APIStatusError):
                status = fault.status_code
                requested_s = self.clients[key]._parse_retry_after_header(fault.response.headers)
            self.has_connected |= not isinstance(
                fault.__cause__, (httpx2.ConnectError, httpx2.ConnectTimeout)
            )
            has_tried = attempt >= min(MAX_RETRIES_TO_CONNECT, self.retries.max_retries)
            if has_tried and not self.has_connected:
                raise ValueError(
                    f"nothing answers at the endpoint {self.url} ({message}); start its server, or "
                    f"{self.remedy}"
                )
            if has_tried and isinstance(fault, NotAnEndpoint) and not self.has_answered:
                raise ValueError(f"{self.url} is no endpoint: {fault}; {self.remedy}")
            if status in FATAL_STATUS:
                raise ValueError(self._rejection(status, key, "messages" in request, message))
            if isinstance(fault, InvalidResponse) and attempt >= MAX_RETRIES_OF_INVALID:
                break
            if attempt == self.retries.max_retries or not is_retryable(status):
                break
            delay_s = self.retries.delay_s(attempt, requested_s)
            if status == 429:
                # The rate limit belongs to the key: with another key the retry can start at once.
                self.key_ring.cool_down(key, delay_s)
            else:
                time.sleep(delay_s)
        duration_s = time.perf_counter() - started
        return Completion((), "", error=f"endpoint {self.url}: {message}", duration_s=duration_s)

    def _message(self, fault: Exception) -> str:
        """Return what has failed, without the keys, which some endpoints repeat in their errors."""
        # The cause of a connection error is its reason: "Connection error." alone says nothing.
        message = f"{type(fault).__name__}: {fault.__cause__ or fault}"
        if isinstance(fault, openai.APIStatusError) and str(fault) == f"Error code: {fault.status_code}":
            message += f": {fault.response.text[:300]}"  # the client quotes OpenAI's format only
        return self.key_ring.redact(message) if self.has_keys else message

    def _rejection(self, status: int, key: int, is_chat: bool, message: str) -> str:
        """Return the error for a status after which no request can succeed."""
        if status != 404 and not self.has_keys:
            problem, remedy = "wants an API key", "set one in the variable of --api_key_env"
        elif status != 404:
            problem, remedy = f"rejected key {key + 1}", "check the key in --api_key_env"
        elif is_chat:
            problem, remedy = f"does not know {self.model!r}", "check --model_name_or_path and --base_url"
        else:  # many endpoints offer chats only
            problem = f"does not know {self.model!r}, or offers no completions API"
            remedy = "check --model_name_or_path and --base_url, or try --protocol chat"
        return f"the endpoint {self.url} {problem}; {remedy}. It answered: {message}"

    def _send_with_extensions(self, key: int, request: dict[str, Any]) -> Completion:
        """Send a request with EXTENSIONS; once the endpoint refuses one by name, without them."""
        if "messages" in request:
            request = request | {"extra_body": self.chat_template}
        if self.sends_extensions:
            try:
                return self._send(key, request | {"extra_body": EXTENSIONS | request.get("extra_body", {})})
            except openai.APIStatusError as error:
                is_refusal = error.status_code in REFUSED_STATUS
                if not (is_refusal and any(name in error.response.text for name in EXTENSIONS)):
                    raise
            self.sends_extensions = False
        return self._send(key, request)

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
        try:
            if "html" in response.headers.get("content-type", "") or (
                "stream" not in request and response.text.lstrip().startswith("<")
            ):
                raise NotAnEndpoint("it answers with a web page (HTML) instead of JSON")
            self.has_answered = True
            # The client does not validate the JSON, so a missing field raises only when it is read.
            read = self._read_stream if "stream" in request else _read_whole
            answer = read(response.parse(), is_chat)
            reason, usage = (answer.finish_reason or "").lower(), answer.usage
            is_at_limit = reason in LENGTH
            if reason in FAILED:
                raise ValueError(f"finish_reason is {answer.finish_reason!r}")
            sent = _restore_stop_string(answer.text, may_have_stopped=not is_chat and not is_at_limit)
            text = encodable(sent)
            counts = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
            details = getattr(usage, "completion_tokens_details", None)
        except ValueError as error:
            raise InvalidResponse(f"invalid response: {error}") from None
        except (AttributeError, TypeError, LookupError) as error:
            raise InvalidResponse(f"invalid response, not in OpenAI's format ({error})") from None
        return Completion(
            token_ids=tuple(map(ord, text)),
            text=text,
            is_truncated=is_at_limit and DONE not in text,
            duration_s=time.perf_counter() - started,
            num_prompt_tokens=counts[0],
            num_completion_tokens=counts[1],
            has_replaced=text != sent,
            key=key + 1 if self.has_keys else None,
            thought=encodable(answer.thought),
            num_thought_tokens=getattr(details, "reasoning_tokens", None),
        )

    def _read_stream(self, chunks: Any, is_chat: bool) -> "Answer":
        """Return what `_read_whole` returns, from server-sent events; call `on_text` with the text so far."""
        text, content, thought, finish_reason, usage = "", "", "", None, None
        calls: dict[int, list[str]] = {}  # index -> name and arguments, which also come in pieces
        with chunks:  # an exception of `on_text` closes the connection
            for chunk in chunks:
                usage = chunk.usage or usage  # the last chunk has it, and no choice
                for choice in chunk.choices[:1]:
                    finish_reason = choice.finish_reason or finish_reason
                    content += _text_of_parts(choice.delta.content if is_chat else choice.text)
                    thought += _thought_of(choice.delta) if is_chat else ""
                    for call in (choice.delta.tool_calls or ()) if is_chat else ():
                        parts = calls.setdefault(call.index, ["", ""])
                        parts[0] += call.function.name or ""
                        parts[1] += call.function.arguments or ""
                text = _chat_text(content, calls.values())
                if self.on_text:
                    self.on_text(text or thought)
        if finish_reason is None:
            raise ValueError("the stream broke off")
        return Answer(text, thought, finish_reason, usage)


class Answer(NamedTuple):
    """An answer of an endpoint."""

    text: str  # with calls of tools
    thought: str  # "" if the endpoint tells none
    finish_reason: str | None  # in the endpoint's own word
    usage: Any  # numbers of tokens; None if the endpoint does not count them


def _read_whole(answer: Any, is_chat: bool) -> Answer:
    """Return the answer that a response contains.

    Raises:
        ValueError: There is no text and no call, or the endpoint reports an error with status 200.

    """
    if error := getattr(answer, "error", None):
        raise ValueError(error.get("message", error) if isinstance(error, dict) else error)
    choice = next(iter(answer.choices or ()), None)
    if choice is None:
        raise ValueError("there is no choice in the answer")
    if not is_chat:
        if choice.text is None:
            raise ValueError("there is no text in the answer")
        return Answer(choice.text, "", choice.finish_reason, answer.usage)
    if (message := choice.message) is None:
        raise ValueError("there is no message in the answer")
    functions = [call.function for call in message.tool_calls or ()]
    functions += [call] if (call := getattr(message, "function_call", None)) else []  # before tools
    calls = [[getattr(f, "name", None), getattr(f, "arguments", None)] for f in functions]
    # A model that thinks until the limit has no content, nor has one whose answer is filtered.
    text = _chat_text(_text_of_parts(message.content or message.refusal), calls)
    return Answer(text, _thought_of(message), choice.finish_reason, answer.usage)


def _thought_of(message: Any) -> str:
    """Return the thought beside a message's content, which servers name in two ways; "" if there is none."""
    thoughts = (getattr(message, name, None) for name in ("reasoning_content", "reasoning"))
    return next((thought for thought in thoughts if isinstance(thought, str)), "")


def _text_of_parts(content: Any) -> str:
    """Return the text of a content, which may be null or a list of parts."""
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    return content or ""


def _chat_text(content: str, calls: Iterable[Sequence[Any]]) -> str:
    """Return the text of a completion, which its calls of tools (name and arguments) follow."""
    formatted = [format_tool_call(name, arguments) for name, arguments in calls]
    return "\n".join([*filter(None, [content]), *formatted]) if formatted else content


def _parse_transcript(prompt: Sequence[int]) -> dict[str, Any]:
    """Return the messages and tools of a chat, or the plain prompt with [DONE] as its stop string."""
    if prompt[0] not in ROLES:
        return {"prompt": "".join(map(chr, prompt)), "stop": [DONE]}
    messages: list[dict[str, Any]] = []
    for i in prompt:
        if i in ROLES:
            messages.append({"role": ROLES[i], "content": ""})
        else:
            messages[-1]["content"] += chr(i)
    messages.pop()  # the assistant's empty message, to be generated
    if messages[0]["role"] != "tools":
        return {"messages": messages}
    tools, *messages = messages
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            messages[number - 1] |= _tool_call_fields(messages[number - 1]["content"], number)
            message["tool_call_id"] = _call_id(number)
    is_first = messages[-1]["role"] == "user" and all(m["role"] != "assistant" for m in messages)
    choice = "required" if is_first else "auto"
    return {"messages": messages, "tools": json.loads(tools["content"]), "tool_choice": choice}


def _tool_call_fields(text: str, number: int) -> dict[str, Any]:
    """Return the fields of an assistant's message whose first call the message with this number answers."""
    call = parse_tool_calls(text)[0]
    function = {"name": call.name or "unknown", "arguments": json.dumps(dict(call.arguments))}
    calls = [{"id": _call_id(number), "type": "function", "function": function}]
    return {"content": text.partition(OPENING)[0].strip(), "tool_calls": calls}


def _call_id(number: int) -> str:
    return f"call{number:05}"  # Mistral's endpoint accepts nine letters and digits only


def _restore_stop_string(text: str, may_have_stopped: bool) -> str:
    """Return the text up to [DONE], and append [DONE] if the endpoint removed it.

    Endpoints omit the stop string. [DONE] has its own line, so a text that does not end with a line end was
    stopped by an end-of-sequence token instead.
    """
    before, done, _ = text.partition(DONE)
    return before + DONE if done or (may_have_stopped and text.endswith("\n")) else text
