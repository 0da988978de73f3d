"""The turns of one trajectory, from its row of samples.jsonl."""

from contextlib import nullcontext

import streamlit as st

from cocos.evaluation.sample_rows import SampleRow, turn_from_row
from cocos.evaluation.trajectory_text import notes, outcome_text, turn_parts


def show_turns(row: SampleRow) -> None:
    """Show the task and every turn of a row up to the end of the trajectory."""
    st.text(row["text"])
    before = None
    for number, turn in enumerate(map(turn_from_row, row["turns"]), start=1):
        if turn.is_carried:
            st.text(f"ended early: its last program counts for attempts {number} to {len(row['turns'])}, too")
            return
        seconds = f"{turn.completion.duration_s:.1f} s to generate, {turn.result.duration_s:.1f} s to run"
        with st.container(border=True):
            with st.container(horizontal=True):
                st.badge(f"attempt {number}", color="green" if turn.result.is_right else "red")
                if turn.step and turn.step.node.isidentifier():  # a badge would interpret Markdown
                    st.badge(turn.step.node, color="blue")
            st.text(f"{outcome_text(turn.result)}{notes(turn)}; {seconds}")
            for part in turn_parts(turn, before, row["tests"]):
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
