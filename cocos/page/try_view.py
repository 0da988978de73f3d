"""Try: a problem that the visitor chooses or types, and the attempts of a model at it."""

from functools import lru_cache, partial
from secrets import token_urlsafe
from typing import Any, get_args

import streamlit as st

from cocos.assembly import conditions
from cocos.dataprep.public_sets import load_problem_set
from cocos.evaluation.sample_rows import trajectory_to_row
from cocos.literals import Agent, Feedback
from cocos.page.live_attempts import LiveAttempts, begin_attempts, live_options, run_archive
from cocos.page.shared import Shared, find_folders, show_code, show_error, show_turns
from cocos.page.typed_problem import TYPED, as_typed, typed_problem
from cocos.prompts import PROTOCOLS

ENDPOINT, OTHER_ADDRESS, OF_AGENT, POLL_S = "an endpoint", "another address", "the agent's", 0.3
# A visitor may ask for so much: attempts at a problem, tokens of an attempt, characters of a text.
MAX_ATTEMPTS, MAX_NEW_TOKENS, MAX_CHARACTERS = 8, 2048, 20_000
load_examples = lru_cache(maxsize=8)(load_problem_set)


def show(page: Shared) -> None:
    """Show the form and the latest of the visitor's attempts, beside each other where there is room."""
    # The identifier in the address finds the attempts again after a reload.
    attempts = page.visitors.attempts_of(st.query_params.setdefault("visitor", token_urlsafe(12)))
    if attempts is None:
        st.error("All places are taken; come back in some minutes.")
        return
    is_playing, limit = bool(attempts) and attempts[-1].is_running, MAX_CHARACTERS
    if attempts and "text" not in st.session_state:  # the page was loaded again
        st.session_state.update(as_typed(attempts[-1].trajectory.problem))
    left, right = st.columns(2, gap="large")
    with left:
        _choose_example(page)
        st.text_area("What should the program do?", key="text", height=100, max_chars=limit)
        st.text_area("Tests: assert lines or pytest functions", key="tests", height=140, max_chars=limit)
        with st.expander("A program to repair, as the first attempt"):
            st.text_area("Program", key="buggy_code", height=140, max_chars=limit)
        options, key = _choose_model(page)
        if st.button("Solve", type="primary", disabled=is_playing, key="solve"):
            _begin(page, attempts, options, key)
    with right:
        st.fragment(_show_attempts, run_every=POLL_S if is_playing else None)(page, attempts, is_playing)


def _choose_example(page: Shared) -> None:
    """Offer examples; a newly chosen one fills the fields."""
    left, right = st.columns(2)
    source = left.selectbox("Examples from", page.options.examples, index=None)
    if not source:
        return
    try:
        problems = {problem.task_id: problem for problem in load_examples(source)}
    except (ValueError, OSError) as error:
        show_error("No examples", error)
        return
    name = right.selectbox("Example", list(problems), index=None, key=f"of {source}")
    if name and st.session_state.get("example") != problems[name]:
        st.session_state.update(as_typed(problems[name]), example=problems[name])


def _choose_model(page: Shared) -> tuple[dict[str, Any], str]:
    """Return the options of test.py that the fields set, and a typed API key."""
    most, key = page.options, ""
    folders = find_folders(most.roots, "config.json", "*.safetensors")
    model = st.selectbox("Model", [*folders, ENDPOINT], key="model")  # the key keeps it when the list changes
    options: dict[str, Any] = {"model_name_or_path": model}
    if model == ENDPOINT:
        # Only addresses given at start get the key in the environment, and remote visitors type no others.
        address = st.selectbox("Address", most.base_urls + ([] if page.token else [OTHER_ADDRESS]))
        if address == OTHER_ADDRESS:
            address = st.text_input("Other address, up to /v1", placeholder="http://localhost:11434/v1")
            key = st.text_input("API key, kept in memory only", type="password") or "none"
        name = st.text_input("Name of the model at the endpoint")
        options = {"model_name_or_path": name, "base_url": address or "missing", "generator": "api"}
    first, second, third = st.columns(3)
    options["protocol"] = first.selectbox("Protocol", [name for name in PROTOCOLS if name != "cocos-fewshot"])
    agent = second.selectbox("Agent", get_args(Agent), help="An agent sees which tests fail.")
    options["num_turns"] = third.number_input("Attempts", 1, MAX_ATTEMPTS, 2)
    feedback = first.selectbox("Feedback", get_args(Feedback) if agent == "none" else [OF_AGENT])
    degree = second.number_input("Temperature", 0.0, 2.0, None, 0.1, placeholder="default")
    tokens = third.number_input("Tokens per attempt", 1, MAX_NEW_TOKENS, 256)
    options |= {"agent": agent, "feedback": "none" if feedback == OF_AGENT else feedback}
    options["temperature"] = None if degree is None else [degree]
    return options | {"max_completion_length": tokens, "api_key_env": most.api_key_env}, key


def _begin(page: Shared, attempts: list[LiveAttempts], options: dict[str, Any], key: str) -> None:
    """Check what was typed, and start the attempts."""
    typed = {name: st.session_state.get(name) or "" for name in TYPED}
    try:
        problem = typed_problem(**typed, example=st.session_state.get("example"))
        args = live_options(problem, **options)
        attempts.append(begin_attempts(problem, args, attempts, page.executor, key))
        st.rerun()
    except (ValueError, OSError) as error:
        show_error("No attempt", error)


def _show_attempts(page: Shared, attempts: list[LiveAttempts], was_playing: bool) -> None:
    """Show the latest attempts. While they are made, Streamlit calls this again and again."""
    if not attempts:
        st.text("Choose an example or type a problem, then press Solve.")
        return
    play = attempts[-1]
    is_running, text = play.is_running, play.text
    show_turns(trajectory_to_row(play.trajectory, **conditions(play.args)))
    if is_running:
        st.badge(f"attempt {len(play.trajectory.turns) + 1}", color="gray")
        show_code(text or "...")
        st.button("Stop", key="stop", on_click=play.stop)
    elif was_playing:
        st.rerun()  # the whole page, so that it stops polling and Solve can be pressed again
    elif play.end_reason:
        show_error("No further attempt", play.end_reason)
    if not is_running and (turns := play.trajectory.turns):
        program = turns[-1].code.encode("utf-8", "replace")
        st.download_button("Program", program, "program.py", on_click="ignore")
    if not is_running and (played := [(one.args, one.trajectory) for one in attempts if one.is_complete]):
        archive = partial(run_archive, played, page.executor)
        st.download_button("Session", archive, "session.zip", on_click="ignore")
