"""Shared parts of the views: options, executor and visitors of the server, folders, turns of a row."""

import hashlib
import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterable
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import streamlit as st

from cocos.assembly import open_executor
from cocos.evaluation.sample_rows import SampleRow, turn_from_row
from cocos.evaluation.trajectory_text import notes, outcome_text, turn_parts
from cocos.page.live_attempts import Visitors
from cocos.page.page_options import PageOptions

# Options in messages -> their fields on the page.
FIELD_NAMES = {
    "--agent": "Agent",
    "--protocol": "Protocol",
    "--feedback": "Feedback",
    "--num_turns": "Attempts",
    "--temperature": "Temperature",
    "--max_completion_length": "Tokens per attempt",
    "--model_name_or_path": "Model",
    "--base_url": "Address",
    "--api_key_env": "API key",
    "--system_prompt": "System message",
    "--prompt_file": "Own wording",
}


def find_folders(roots: Iterable[str | Path], *patterns: str) -> dict[str, Path]:
    """Return the folders below the roots that have a file for each pattern, by their paths, latest first.

    Checkpoints and hidden folders are left out. Links to folders are not followed, and a folder is left out
    if one of its files is a link to a place outside of the root.
    """
    found: dict[str, Path] = {}
    written_s: dict[str, float] = {}
    for root in map(Path, roots):
        for name, folders, _ in os.walk(root):
            folders[:] = sorted(n for n in folders if not n.startswith((".", "checkpoint-")))
            folder = Path(name)
            files = [[*folder.glob(pattern)] for pattern in patterns]
            if all(files) and _stays_inside(folder, root):
                found[name] = folder
                written_s[name] = max(path.stat().st_mtime for matches in files for path in matches)
    return dict(sorted(found.items(), key=lambda item: -written_s[item[0]]))


def _stays_inside(folder: Path, root: Path) -> bool:
    return all(path.resolve().is_relative_to(root.resolve()) for path in folder.iterdir())


class Shared:
    """Options, executor and visitors of one server.

    Attributes:
        report_key: Part of the links to reports, which only visitors of the page know.
        token: What visitors have to type if other machines can reach the page; "": nothing.

    """

    def __init__(self, options: PageOptions) -> None:
        self.options, self.executor = options, open_executor(options)
        self.report_key = secrets.token_urlsafe(16)
        self.token = secrets.token_urlsafe(16) if options.allow_remote else ""
        self.visitors = Visitors(options.max_visitors)
        self._wordings = tempfile.TemporaryDirectory(prefix="cocos-page-")

    def wording_file(self, name: str, text: str) -> str:
        """Return the path of a file with a visitor's wording; the same text has the same path."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        path = Path(self._wordings.name) / digest / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")
        return str(path)


@cache
def shared(options: str) -> Shared:
    """Return what the visitors of this process share; the first call starts the executor."""
    return Shared(PageOptions(**json.loads(options)))


def in_words_of_the_page(message: str) -> str:
    """Return a message of the commands with the names of fields in place of options and of their files."""
    message = re.sub(r"(--(?:prompt_file|system_prompt)) \S+?(?=[:,;]? )", r"\1", message)
    return re.sub(r"--\w+", lambda option: FIELD_NAMES.get(option[0], option[0]), message)


def show_turns(row: SampleRow) -> None:
    """Show the task and every turn of a row up to the end of the trajectory."""
    st.text(row["text"])
    before = None
    for number, turn in enumerate(map(turn_from_row, row["turns"]), start=1):
        if turn.is_carried:
            st.text("There was no further attempt: the last program is the answer.")
            return
        seconds = f"{turn.completion.duration_s:.1f} s to generate, {turn.result.duration_s:.1f} s to run"
        with st.container(border=True):
            with st.container(horizontal=True):
                st.badge(f"attempt {number}", color="green" if turn.result.is_right else "red")
                if turn.step and turn.step.node.isidentifier():  # a badge would interpret Markdown
                    st.badge(turn.step.node, color="blue")
            st.text(f"{outcome_text(turn.result)}{in_words_of_the_page(notes(turn))}; {seconds}")
            for part in turn_parts(turn, before, row["tests"], row["num_visible_tests"]):
                if not part.is_detail:
                    st.caption(part.title)
                with st.expander(part.title) if part.is_detail else nullcontext():
                    show_code(part.text, part.language)
        before = turn


def show_error(title: str, reason: object) -> None:
    """Show an error; the reason is shown as text, because it may quote what was typed."""
    st.error(f"{title}:")
    st.text(str(reason))


def show_code(text: str, language: str | None = None) -> None:
    """Show a text that nothing interprets; `language` only chooses its colours."""
    st.code(text, language=language, wrap_lines=True)
