"""Options of the page."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cocos.config.executor_options import ExecutorOptions
from cocos.config.option import option
from cocos.literals import Isolated

LOCAL_ADDRESSES = ("127.0.0.1", "localhost")
# A visitor may ask for so much: attempts at a problem, tokens of an attempt, characters of a text.
MAX_ATTEMPTS, MAX_NEW_TOKENS, MAX_CHARACTERS = 10, 2048, 20_000


@dataclass
class PageOptions(ExecutorOptions):
    """Options of cocos page."""

    group: ClassVar[str] = "page"

    roots: list[str] = option(
        "run",
        ["models", "outputs", "data/toy"],
        "Folders with models and runs, listed in this order. The page reads nothing outside of them.",
    )
    examples: list[str] = option(
        "run",
        ["data/toy/test.jsonl", "data/toy/feedback/test.jsonl", "hub:mbpp/test", "hub:humanevalfix"],
        "Problems to choose an example from: files, or public sets. A file beside the chosen model, or "
        "beside the one from which it was trained, comes first.",
    )
    base_url: str | None = option(
        "sampling",
        None,
        "OpenAI-compatible endpoint to try beside the models in --roots, up to and including /v1. It "
        "gets the key in OPENAI_API_KEY.",
    )
    address: str = option(
        "run",
        "127.0.0.1",
        "Address to listen on; 0.0.0.0: every address. Visitors from other machines have to type the "
        "token that is printed.",
    )
    port: int = option("run", 8501, "Port to listen on.")
    min_isolation: Isolated = option("executor", "seccomp", "Weakest isolation level to accept.")

    def __post_init__(self) -> None:
        ExecutorOptions.__post_init__(self)
        if not 1 <= self.port <= 65535:
            raise ValueError(f"--port is {self.port}; give 1 to 65535")
        if not self.base_url and not any(Path(root).is_dir() for root in self.roots):
            raise ValueError(
                f"--roots: no folder {' or '.join(self.roots)}; give one that exists, or --base_url"
            )

    @property
    def is_local(self) -> bool:
        """True if no other machine can reach the page."""
        return self.address in LOCAL_ADDRESSES

    @property
    def server_settings(self) -> dict[str, object]:
        """Streamlit's settings."""
        return {
            "server.address": self.address,
            "server.port": self.port,
            "server.headless": True,
            # Against DNS rebinding: a page of another site must not reach this one under its own name.
            "server.allowedHosts": list(LOCAL_ADDRESSES) if self.is_local else [],
            "server.fileWatcherType": "none",
            "browser.gatherUsageStats": False,
            # A collection after each poll would hold the interpreter's lock for as long as a token takes.
            "runner.postScriptGC": False,
            "client.showErrorDetails": "none",  # a traceback is for the terminal, not for visitors
            "client.toolbarMode": "viewer",
        }
