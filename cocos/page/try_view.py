"""Try: a problem, and the attempts of a model at it."""

from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from secrets import token_urlsafe
from textwrap import shorten

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from cocos.evaluation.trajectory_text import notes, outcome_text, turn_parts
from cocos.page import form
from cocos.page.live_attempts import LiveAttempts, begin_attempts, live_options, run_archive
from cocos.page.shared import Shared, linked_folders, show_code, show_error
from cocos.page.typed_problem import typed_problem
from cocos.trajectories import Trajectory

POLL_S = 0.3
DOWNLOAD = ":material/download:"


@dataclass(frozen=True)
class Visitor:
    """A visitor's attempts, which a reload of the page finds again, and the sessions of the open windows."""

    attempts: list[LiveAttempts] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)

    def is_connected(self) -> bool:
        """Return whether a window is open; there are none without a server."""
        return not runtime.exists() or any(map(runtime.get_instance().is_active_session, self.sessions))


@st.cache_resource(max_entries=100, show_spinner=False)
def _visitor_named(name: str) -> Visitor:
    return Visitor()


def welcome() -> Visitor:
    """Return the visitor of this window, and note that it is open."""
    visitor = _visitor_named(st.query_params.setdefault("visitor", token_urlsafe(12)))
    if context := get_script_run_ctx():
        visitor.sessions.add(context.session_id)
    return visitor


def show(page: Shared) -> None:
    """Show the form and the attempts, beside each other where there is room."""
    visitor = welcome()
    attempts = visitor.attempts
    is_playing = any(one.is_running for one in attempts)
    st.caption("A model writes a program, its tests are run, and the model corrects the program.")
    left, right = st.columns(2, gap="large")
    with left:
        _show_form(page, visitor, is_playing)
    with right:
        st.fragment(_show_attempts, run_every=POLL_S if is_playing else None)(page, attempts, is_playing)


def _show_form(page: Shared, visitor: Visitor, is_playing: bool) -> None:
    models = form.models_of(page.options)
    form.prepare(models, page.options.examples)
    form.type_problem(page.options.examples)
    linked = linked_folders(page.options.roots, *form.MODEL_FILES)
    if linked:
        st.text(f"Not offered, because links lead out of the folders of the page: {', '.join(linked)}.")
    if not models:
        st.text("There is no model: start the page with other --roots, or with --base_url.")
        return
    model = form.choose_model(page.options, models)
    button = st.container()  # above the settings, which suit the model and may be left alone
    with st.expander("Settings"):
        options = model | form.choose_options(st.session_state["model"])
    if not button.button("Solve", type="primary", disabled=is_playing, key="solve"):
        return
    state = st.session_state
    try:
        problem = typed_problem(state["text"], state["tests"], state["buggy_code"], state.get("example"))
        new = begin_attempts(
            *(problem, live_options(problem, **options), visitor.attempts),
            *(page.executor, visitor.is_connected),
        )
    except (ValueError, OSError) as error:
        show_error("No attempt", error)
        return
    visitor.attempts.append(new)
    st.rerun()


def _show_attempts(page: Shared, attempts: list[LiveAttempts], was_playing: bool) -> None:
    """Show the chosen attempts. While they are made, Streamlit calls this again and again."""
    if any(one.is_running for one in attempts) != was_playing:
        st.rerun()  # the whole page: another form, or another rate of polling
    if not attempts:
        st.text("Choose an example or type a problem, then press Solve.")
        return
    titles = [f"{n}. {shorten(one.trajectory.problem.text, 50)}" for n, one in enumerate(attempts, start=1)]
    last, key = len(attempts) - 1, f"shown of {len(attempts)}"  # new attempts are shown at once
    number = st.selectbox("Problems of this session", range(last + 1), last, titles.__getitem__, key=key)
    play = attempts[number]
    is_running, text = play.is_running, play.text
    if play.verdict:
        is_solved = play.trajectory.turns[-1].result.is_right
        (st.success if is_solved else st.warning)(play.verdict)
    _show_turns(play.trajectory)
    if is_running:
        st.badge(f"attempt {len(play.trajectory.turns) + 1}", color="gray")
        show_code(text or ("The model is being loaded ..." if play.is_loading else "..."))
        st.button("Stop", key=f"stop {number}", on_click=play.stop)
        return
    if play.end_reason:
        show_error("No further attempt", play.end_reason)
    with st.container(horizontal=True):
        if turns := play.trajectory.turns:
            program = program_file(turns[-1].code)
            st.download_button("Download program", program, "program.py", on_click="ignore", icon=DOWNLOAD)
        if played := [one for one in attempts if one.is_complete]:
            archive = partial(run_archive, played, page.executor)
            st.download_button("Download session", archive, "session.zip", on_click="ignore", icon=DOWNLOAD)


def _show_turns(trajectory: Trajectory) -> None:
    """Show the task and every turn up to the end of the trajectory."""
    problem = trajectory.problem
    st.text(problem.text)
    before = None
    for number, turn in enumerate(trajectory.turns, start=1):
        if turn.is_carried:
            if not turn.result.is_right:  # a hidden test fails; above a right one stands that it is solved
                st.text("There was no further attempt: the last program is the answer.")
            return
        seconds = f"{turn.completion.duration_s:.1f} s to generate, {turn.result.duration_s:.1f} s to run"
        with st.container(border=True):
            with st.container(horizontal=True):
                st.badge(f"attempt {number}", color="green" if turn.result.is_right else "red")
                if turn.step:
                    st.badge(turn.step.node, color="blue")
            st.text(f"{outcome_text(turn.result)}{notes(turn)}; {seconds}")
            for part in turn_parts(turn, before, problem.scored_tests, len(problem.test_list)):
                if not part.is_detail:
                    st.caption(part.title)
                with st.expander(part.title) if part.is_detail else nullcontext():
                    show_code(part.text, part.language)
        before = turn


def program_file(code: str) -> bytes:
    """Return the content of a file with a program: its last line ends, too."""
    return f"{code.rstrip(chr(10))}\n".encode("utf-8", "replace")
