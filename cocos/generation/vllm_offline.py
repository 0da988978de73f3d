"""Generator that samples with vLLM's offline engine.

scripts/check_vllm.sh runs it against the real engine, on a processor; the tests run it against an imitation.
Between turns, vLLM's prefix cache keeps the keys and values of the transcripts.
"""

import atexit
import multiprocessing
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, TypeVar

import torch
from transformers import PreTrainedTokenizerBase

from cocos.files.extras import install_command
from cocos.generation.interface import Completion
from cocos.generation.tokenizer import TokenTranscripts
from cocos.prompts import DONE

POLL_S = 0.5
T = TypeVar("T")


@contextmanager
def engine_failure_named(action: str) -> Iterator[None]:
    """Turn every failure of the engine in the `with` block into an error of one line.

    Args:
        action: What the engine is asked to do, as in "vLLM cannot ACTION".

    Raises:
        ValueError: The block has raised any exception. Its first line is quoted; vLLM's own messages, which
            name the cause, are above it in the output.

    """
    try:
        yield
    # vLLM and TRL's client raise plain Exception, RuntimeError, AttributeError and others, by version.
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")
        raise ValueError(
            f"vLLM cannot {action} ({type(error).__name__}: {reason}); its messages above have the cause"
        ) from error


def call_while_alive(call: Callable[[], T], processes: Iterable[BaseProcess]) -> T:
    """Return `call()`, or raise once one of the processes has ended.

    The call runs in a thread. vLLM 0.30 waits for ever for an engine process that was killed, and a thread
    that waits cannot be stopped: after an error it stays behind until this process ends.

    Raises:
        ChildProcessError: A process has ended before the call.
        BaseException: What the call raises.

    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    while not wait([answer], POLL_S).done:
        for process in processes:
            if not process.is_alive():
                raise ChildProcessError(f"its process ended with exit code {process.exitcode}")
    return answer.result()


# Sampling parameters of vLLM that end a completion at [DONE] and keep [DONE] in it.
STOP_AT_DONE: dict[str, Any] = {"stop": [DONE], "include_stop_str_in_output": True}


class VLLMGenerator(TokenTranscripts):
    """Generator that samples with vLLM on the accelerator of this machine, or on its processors.

    Args:
        dtype: Data type of the weights: bfloat16, float16 or float32.

    Raises:
        ValueError: vLLM is not installed, cannot load the model, or has died.

    """

    def __init__(
        self,
        name_or_path: str,
        tokenizer: PreTrainedTokenizerBase,
        eos_ids: Iterable[int],
        dtype: str,
        max_completion_length: int = 512,
    ):
        super().__init__(tokenizer, eos_ids)
        try:
            import vllm
        except ImportError:
            raise ValueError(f"--generator vllm needs vLLM: {install_command('vllm')}") from None
        self.sampling_params = vllm.SamplingParams
        other_processes = multiprocessing.active_children()
        with engine_failure_named(f"load {name_or_path}"):
            self.engine = vllm.LLM(
                model=name_or_path,
                dtype=dtype,
                enable_prefix_caching=True,
                # On a processor, a seeded prompt that is split over two steps ends vLLM 0.30: it rewinds the
                # prompt's random generator, which only those of CUDA support. Without chunks,
                # max_num_batched_tokens grows to the model's context, and prompts are computed whole.
                enable_chunked_prefill=None if torch.accelerator.is_available() else False,
            )
        # Its processes end when it is collected, or else at the exit: multiprocessing waits for them there,
        # before vLLM would end them.
        atexit.register(weakref.finalize(self.engine, self.engine.llm_engine.engine_core.shutdown))
        self.processes = [p for p in multiprocessing.active_children() if p not in other_processes]
        self.max_completion_length = max_completion_length
        self.context_length = self.engine.llm_engine.model_config.max_model_len

    def generate(
        self, prompts: Sequence[Sequence[int]], temperature: float, seeds: Sequence[int] | None = None
    ) -> list[Completion]:
        started = time.perf_counter()
        options: dict[str, Any] = {
            "temperature": temperature,
            "max_tokens": self.max_completion_length,
            **STOP_AT_DONE,
            "stop_token_ids": sorted(self.eos_ids),
        }
        params = (
            [self.sampling_params(**options, seed=seed) for seed in seeds]
            if seeds is not None
            else self.sampling_params(**options)
        )
        inputs = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        with engine_failure_named("continue the run"):
            outputs = call_while_alive(
                lambda: self.engine.generate(inputs, params, use_tqdm=False), self.processes
            )
        sampled = [output.outputs[0].token_ids for output in outputs]
        self.progress.add(sum(map(len, sampled)), len(sampled))
        return self.batch_completions(sampled, time.perf_counter() - started)
