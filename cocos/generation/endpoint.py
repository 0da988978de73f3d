"""An OpenAI-compatible endpoint as a Generator: Ollama, a vLLM server, Groq, Together and others.

Plain protocols go to the endpoint's completions, chats to its chat completions. What fails in passing (no
connection, too slow, 408, 409, 429, 5xx, an answer that is cut off or makes no sense) is asked again; what
keeps failing becomes `Completion.error`, never an answer. Knows HTTP; does not know tokens: the ids of a
transcript are Unicode code points and two marks of who speaks.
"""

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import openai

from cocos.generation import Completion
from cocos.generation.api_keys import KeyRing
from cocos.generation.retry import pause_asked_for, pause_until_reset
from cocos.prompts import DONE

USER, ASSISTANT = 0x110000, 0x110001  # beyond the last code point: each opens a message
ENDED, CUT_OFF = {"stop", "eos"}, "length"  # finish reasons; `eos` is Together's
ASKED_AGAIN = {408, 409, 429}  # and from 500 on


class SenselessAnswer(Exception):
    """An answer that is none."""


@dataclass(frozen=True)
class Retries:
    """How failures in passing are met.

    Attributes:
        count: Further tries of a request.
        first_pause_s: Before the first of them; doubled for each, times a random factor in [0.5, 1.5]. What
            the endpoint asks for goes before.
        longest_pause_s: No pause is longer, whoever asks for it.

    """

    count: int = 6
    first_pause_s: float = 1.0
    longest_pause_s: float = 300.0


class EndpointGenerator:
    """Asks an endpoint for completions, many at a time.

    Args:
        model: Its name there.
        base_url: Up to and including /v1; None is OpenAI's.
        keys: In rotation.
        max_completion_length: Tokens per completion at most.
        concurrency: Requests under way at most.
        timeout_s: For one request.
        retries: See Retries.

    """

    batch_size: int | None = None

    def __init__(
        self,
        model: str,
        base_url: str | None,
        keys: Sequence[str],
        max_completion_length: int = 512,
        concurrency: int = 8,
        timeout_s: float = 120.0,
        retries: Retries = Retries(),
    ):
        self.model = model
        self.max_completion_length = max_completion_length
        self.concurrency = concurrency
        self.retries = retries
        self.ring = KeyRing(keys)
        # Its own retries know neither the other keys nor answers that make no sense.
        self.clients = [
            openai.OpenAI(api_key=key, base_url=base_url, timeout=timeout_s, max_retries=0) for key in keys
        ]

    def start(self, message: str, is_chat: bool) -> list[int]:
        return [USER, *map(ord, message), ASSISTANT] if is_chat else list(map(ord, message))

    def extend(self, prompt: Sequence[int], completion: Completion, message: str, is_chat: bool) -> list[int]:
        return [*prompt, *completion.kept_ids, *self.start(message, is_chat)]

    def quote(self, text: str) -> Completion:
        return Completion(tuple(map(ord, text)), text)

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        temperature: float,
        seeds: Sequence[int] | None = None,
    ) -> list[Completion]:
        sampling: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_completion_length,
            "temperature": temperature,
        }
        requests = [_request(prompt) | sampling for prompt in prompts]
        if seeds is not None and temperature > 0:
            # The endpoint's promise, not ours; 31 bits are what every endpoint takes.
            requests = [r | {"seed": seed % 2**31} for r, seed in zip(requests, seeds, strict=True)]
        pool = ThreadPoolExecutor(self.concurrency)
        try:
            return list(pool.map(self._complete, requests))
        finally:
            pool.shutdown(cancel_futures=True)

    def _complete(self, request: dict[str, Any]) -> Completion:
        """Ask until there is an answer or the tries are used up.

        Raises:
            ValueError: The endpoint will not answer any request made like this one.

        """
        began = time.perf_counter()
        for attempt in range(self.retries.count + 1):
            number = self.ring.take()
            try:
                return self._ask(number, request)
            except openai.APIStatusError as error:
                told, status = f"{type(error).__name__}: {error}", error.status_code
                asked_for = pause_asked_for(error.response.headers)
            except (openai.APIError, SenselessAnswer) as error:
                told, status, asked_for = f"{type(error).__name__}: {error}", None, None
            told = self.ring.hidden(told)
            if status in (401, 403, 404):
                raise ValueError(
                    f"the endpoint refused key {number + 1} or does not know model {self.model!r}; see "
                    f"--base_url, --api_key_env, --model_name_or_path. It said: {told}"
                )
            if attempt == self.retries.count or (status and status < 500 and status not in ASKED_AGAIN):
                break  # the latter: this very request will never do; it is too long, say
            pause_s = self.retries.first_pause_s * 2**attempt * random.uniform(0.5, 1.5)
            pause_s = min(pause_s if asked_for is None else asked_for, self.retries.longest_pause_s)
            if status == 429:
                self.ring.rest(number, pause_s)  # another key may go on at once
            else:
                time.sleep(pause_s)
        return Completion((), "", error=told, duration_s=time.perf_counter() - began)

    def _ask(self, number: int, request: dict[str, Any]) -> Completion:
        began = time.perf_counter()
        client = self.clients[number]
        kind = client.chat.completions if "messages" in request else client.completions
        raw = kind.with_raw_response.create(**request)
        self.ring.rest(number, min(pause_until_reset(raw.headers), self.retries.longest_pause_s))
        try:  # its parser takes any JSON: what is not there shows here
            answer = raw.parse()
            choice, usage = answer.choices[0], answer.usage
            text = choice.message.content if "messages" in request else choice.text
            is_cut_off = choice.finish_reason == CUT_OFF
            if not is_cut_off and (text is None or choice.finish_reason not in ENDED):
                raise ValueError(f"finish_reason is {choice.finish_reason!r}")
            text = _through_done(text or "", "stop" in request and not is_cut_off)
            counts = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
        except (ValueError, AttributeError, TypeError, LookupError) as error:
            raise SenselessAnswer(f"the answer makes no sense: {error}") from None
        return Completion(
            token_ids=tuple(map(ord, text)),
            text=text,
            is_truncated=is_cut_off and DONE not in text,
            duration_s=time.perf_counter() - began,
            num_prompt_tokens=counts[0],
            num_completion_tokens=counts[1],
        )


def _request(prompt: Sequence[int]) -> dict[str, Any]:
    """What a transcript asks for: messages, or a text to be continued up to [DONE]."""
    if prompt[0] != USER:
        return {"prompt": "".join(map(chr, prompt)), "stop": [DONE]}
    messages: list[dict[str, str]] = []
    for i in prompt:
        if i in (USER, ASSISTANT):
            messages.append({"role": "user" if i == USER else "assistant", "content": ""})
        else:
            messages[-1]["content"] += chr(i)
    return {"messages": messages[:-1]}  # the last is the answer's


def _through_done(text: str, may_have_met_it: bool) -> str:
    """The answer through [DONE]; endpoints leave out the stop string that they met. An answer that ends
    within a line met an end-of-sequence token instead.
    """
    before, found, _ = text.partition(DONE)
    return before + DONE if found or (may_have_met_it and text.endswith("\n")) else text
