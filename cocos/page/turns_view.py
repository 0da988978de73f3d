"""The turns of one trajectory, from its row of samples.jsonl: outcome, program, verdicts and changes."""

import streamlit as st

from cocos.evaluation.sample_rows import SampleRow, turn_from_row
from cocos.evaluation.trajectory_text import changes_text, notes, outcome_text, verdicts_text


def show_turns(row: SampleRow) -> None:
    """Show the task and every turn of a row."""
    st.text(row["text"])
    before = ""
    for number, turn_row in enumerate(row["turns"], start=1):
        turn = turn_from_row(turn_row)
        seconds = f"{turn.completion.duration_s:.1f} s to generate, {turn.result.duration_s:.1f} s to run"
        with st.container(border=True):
            st.badge(f"attempt {number}", color="green" if turn.result.all_passed else "red")
            st.text(f"{outcome_text(turn.result)}{notes(turn)}; {seconds}")
            if turn.told:
                with st.expander("Feedback before this attempt"):
                    show_code(turn.told)
            show_code(turn.code or "(no program)", "python")
            if turn.result.verdicts:
                show_code(verdicts_text(row["tests"], turn.result))
            if number > 1:
                st.caption("Changes since the attempt before" if turn.code != before else "The same program")
                if changes := changes_text(before, turn.code):
                    show_code(changes, "diff")
        before = turn.code


def show_error(title: str, reason: object) -> None:
    """Show an error; the reason is shown as text, because it may quote what was typed."""
    st.error(f"{title}:")
    st.text(str(reason))


def show_code(text: str, language: str | None = None) -> None:
    """Show a text that nothing interprets; `language` only chooses its colours."""
    st.code(text, language=language, wrap_lines=True)
