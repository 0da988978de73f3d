"""Try: a problem, and the attempts of a model at it, with what a visitor may do after them."""

from functools import partial
from secrets import token_urlsafe
from textwrap import shorten
from typing import Any

import streamlit as st

from cocos.assembly import conditions
from cocos.evaluation.sample_rows import trajectory_to_row
from cocos.evaluation.trajectory_text import outcome_text, verdicts_text
from cocos.page import form
from cocos.page.live_attempts import (
    LiveAttempts,
    Visit,
    begin_another,
    begin_attempts,
    live_options,
    run_archive,
)
from cocos.page.shared import Shared, in_words_of_the_page, show_code, show_error, show_turns
from cocos.page.typed_problem import TYPED, as_typed, typed_problem
from cocos.problems import Problem
from cocos.trajectories import Turn, as_program

POLL_S = 0.3
DOWNLOAD = ":material/download:"


def show(page: Shared) -> None:
    """Show the form and the attempts, beside each other where there is room."""
    # The identifier in the address finds the visit again after a reload.
    visit = page.visitors.visit_of(st.query_params.setdefault("visitor", token_urlsafe(12)))
    if visit is None:
        st.error("All places are taken; come back in some minutes.")
        return
    attempts, models = visit.attempts, form.models_of(page)
    is_playing = any(one.is_running for one in attempts)
    form.restore(visit.form, models)
    st.caption("A model writes a program, its tests are run, and the model corrects the program.")
    shown = st.session_state.get("shown", len(attempts) - 1)
    has_two = bool(attempts) and attempts[shown].beside is not None  # two models need more room than the form
    left, right = st.columns([1, 2] if has_two else 2, gap="large")
    with left:
        _show_form(page, visit, models, is_playing)
    visit.form = form.stored()
    with right:
        st.fragment(_show_attempts, run_every=POLL_S if is_playing else None)(page, visit, is_playing)


def _show_form(page: Shared, visit: Visit, models: list[str], is_playing: bool) -> None:
    limit, words = form.MAX_CHARACTERS, form.HELP
    form.choose_example(page.options.examples)
    st.text_area("What should the program do?", key="text", height=90, max_chars=limit, help=words["text"])
    label = "Tests: assert lines or pytest functions"
    st.text_area(label, key="tests", height=120, max_chars=limit, help=words["tests"])
    with st.expander(
        "A program to repair, as the first attempt", expanded=bool(visit.form.get("buggy_code"))
    ):
        st.text_area("Program", key="buggy_code", height=140, max_chars=limit, help=words["buggy_code"])
    model, key = form.choose_model(page, models)
    button = st.container()  # above the settings, which suit the model and may be left alone
    with st.expander("Settings"):
        settings = form.choose_options(st.session_state["model"])
        second = form.choose_second(models)
    wording = form.choose_wording(page, settings["protocol"])
    options = model | settings | wording | {"api_key_env": page.options.api_key_env}
    with button:
        if st.button("Solve", type="primary", disabled=is_playing, key="solve"):
            _begin(page, visit, options, second and options | second | wording, key)


def _begin(
    page: Shared, visit: Visit, options: dict[str, Any], second: dict[str, Any] | None, key: str
) -> None:
    """Check what was typed, and start the attempts, those of a second model beside the first one's."""
    typed = {name: st.session_state.get(name) or "" for name in TYPED}
    try:
        problem = typed_problem(**typed, example=st.session_state.get("example"))
        both = [live_options(problem, **chosen) for chosen in (options, second) if chosen]
        new = [begin_attempts(problem, args, visit.attempts, page.executor, key) for args in both]
    except (ValueError, OSError) as error:
        show_error("No attempt", in_words_of_the_page(str(error)))
        return
    visit.form = form.stored()
    if len(new) > 1:
        new[0].beside = new[1]
        visit.attempts.append(new[1])
    _show_last(visit, new[0])
    st.rerun()


def _show_last(visit: Visit, new: LiveAttempts) -> None:
    visit.attempts.append(new)
    st.session_state["shown"] = len(visit.attempts) - 1


def _fill(problem: Problem, **typed: str) -> None:
    """Fill the form with a problem; called by buttons of the fragment, which then reruns the whole page."""
    st.session_state.update(as_typed(problem) | typed, example=problem, is_filled=True)


def _show_attempts(page: Shared, visit: Visit, was_playing: bool) -> None:
    """Show the chosen attempts. While they are made, Streamlit calls this again and again."""
    attempts = visit.attempts
    is_playing = any(one.is_running for one in attempts)
    if st.session_state.pop("is_filled", False) or is_playing != was_playing:
        st.rerun()  # the whole page: another form, or another rate of polling
    if not attempts:
        st.text("Choose an example or type a problem, then press Solve.")
        if example := form.first_example(page.options.examples):
            st.button("Fill in an example", on_click=_fill, args=[example], key="fill")
        return
    play = attempts[_choose_attempts(attempts)]
    plays = [play, play.beside] if play.beside else [play]
    places = st.columns(len(plays))
    for place, one in zip(places, plays, strict=True):
        with place:
            if len(plays) > 1:
                st.caption(one.args.model_name_or_path)
            _show_one(one, f"stop {attempts.index(one)}")
    if any(one.is_running for one in plays):
        return
    for place, one in zip(places, plays, strict=True):
        with place:
            _offer_more(page, visit, one)
            with st.container(horizontal=True):
                _offer_program(one, f"program {attempts.index(one)}")
                if one is plays[-1]:
                    _offer_session(page, attempts)


def _show_one(play: LiveAttempts, key: str) -> None:
    """Show the attempts of one model, and while they are made the text so far."""
    is_running, text = play.is_running, play.text
    _show_verdict(play)
    show_turns(trajectory_to_row(play.trajectory, **conditions(play.args)))
    if is_running:
        st.badge(f"attempt {len(play.trajectory.turns) + 1}", color="gray")
        show_code(text or ("The model is being loaded ..." if play.is_loading else "..."))
        st.button("Stop", key=key, on_click=play.stop)
    elif play.end_reason:
        show_error("No further attempt", in_words_of_the_page(play.end_reason))


def _choose_attempts(attempts: list[LiveAttempts]) -> int:
    """Let the visitor choose among the problems of the session, if there are several; return the index."""
    if len(attempts) == 1:
        return 0
    titles = [_title(number, one) for number, one in enumerate(attempts, start=1)]
    state = st.session_state
    state["shown"] = state.get("shown", len(attempts) - 1)  # set, so that the browser shows a changed title
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    label = "Problems of this session"
    index = left.selectbox(label, range(len(attempts)), key="shown", format_func=titles.__getitem__)
    problem = attempts[index].trajectory.problem
    right.button("Use again", on_click=_fill, args=[problem], help="Fill the form with this problem.")
    return index


def _title(number: int, attempts: LiveAttempts) -> str:
    words = shorten(attempts.trajectory.problem.text, 50, placeholder=" ...")
    feedback = " (with your feedback)" if attempts.own_feedback else ""
    mark = ("✓ " if attempts.trajectory.turns[-1].result.is_right else "✗ ") if attempts.verdict else ""
    return f"{number}. {mark}{words}{feedback}"  # the mark in front, where no field cuts it off


def _show_verdict(play: LiveAttempts) -> None:
    """Say in a sentence what came of the attempts."""
    if play.verdict:
        is_solved = play.trajectory.turns[-1].result.is_right
        (st.success if is_solved else st.warning)(play.verdict)


def _offer_more(page: Shared, visit: Visit, play: LiveAttempts) -> None:
    """Offer what a visitor may do after the attempts of one model."""
    turns = [turn for turn in play.trajectory.turns if not turn.is_carried]
    if not turns:
        return
    number = visit.attempts.index(play)
    _offer_another(page, visit, play, turns, f"feedback {number}")
    _offer_changes(page, play, turns[-1].code, number)


def _offer_another(page: Shared, visit: Visit, play: LiveAttempts, turns: list[Turn], key: str) -> None:
    """Offer another attempt with the visitor's own feedback."""
    is_possible = play.args.agent != "tools" and turns[-1].completion.error is None
    if not is_possible or len(turns) >= 2 * form.MAX_ATTEMPTS:
        return

    def begin() -> None:
        if words := st.session_state[key].strip():
            _show_last(visit, begin_another(play, words, page.executor))

    with st.expander("Tell the model what to change"):
        st.text_area(
            "Your feedback",
            key=key,
            max_chars=form.MAX_CHARACTERS,
            height=80,
            placeholder="It must keep the order of the numbers.",
            help="The request of one more attempt begins with these words. The session leaves that attempt "
            "out, because no run of test.py repeats it.",
        )
        st.button("Try again", key=f"again, {key}", on_click=begin)


def _offer_changes(page: Shared, play: LiveAttempts, last_code: str, number: int) -> None:
    """Let the visitor change the last program, run its tests, and have a model repair it."""
    problem = play.trajectory.problem
    with st.expander("Change the program and run its tests"):
        key, limit = f"change {number}", form.MAX_CHARACTERS
        code = st.text_area("Your program", last_code, key=key, max_chars=limit, height=200)
        with st.container(horizontal=True):
            is_run = st.button("Run the tests", key=f"run {number}")
            repair = partial(_fill, problem, buggy_code=code)
            words = "Fill the form with this program as the first attempt."
            st.button("Let a model repair it", key=f"repair {number}", on_click=repair, help=words)
        if is_run:
            result = page.executor.submit(as_program(problem, code)).result()
            st.text(outcome_text(result))
            show_code(verdicts_text(problem.scored_tests, len(problem.test_list), result))


def program_file(code: str) -> bytes:
    """Return the content of a file with a program: its last line ends, too."""
    return f"{code.rstrip(chr(10))}\n".encode("utf-8", "replace")


def _offer_program(play: LiveAttempts, key: str) -> None:
    if turns := play.trajectory.turns:
        program = program_file(turns[-1].code)
        words = "Download program"
        st.download_button(words, program, "program.py", key=key, on_click="ignore", icon=DOWNLOAD)


def _offer_session(page: Shared, attempts: list[LiveAttempts]) -> None:
    if played := [(one.args, one.trajectory) for one in attempts if one.is_complete]:
        archive = partial(run_archive, played, page.executor)
        st.download_button("Download session", archive, "session.zip", on_click="ignore", icon=DOWNLOAD)
