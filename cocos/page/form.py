"""The form of Try: a problem that the visitor chooses or types, a model, and the options that suit it."""

import json
import textwrap
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import streamlit as st
import yaml

from cocos.config.prompt_options import PromptOptions
from cocos.dataprep.public_sets import load_problem_set
from cocos.literals import Agent, Feedback
from cocos.page.shared import Shared, find_folders, show_error
from cocos.page.typed_problem import TEST_LINE, as_typed
from cocos.problems import Problem
from cocos.prompts import PROTOCOLS

ENDPOINT, OTHER_ADDRESS, OF_AGENT = "an endpoint", "another address", "the agent's"
NO_SECOND = "none"
# A visitor may ask for so much: attempts at a problem, tokens of an attempt, characters of a text.
MAX_ATTEMPTS, MAX_NEW_TOKENS, MAX_CHARACTERS = 8, 2048, 20_000
CHOSEN = ("protocol", "agent", "num_turns", "feedback", "early_stop", "temperature", "tokens")
WORDING = ("system", "first_turn", "later_turn")
# What a reload restores. An API key is not among them: it is never stored.
FIELDS = (
    "text",
    "tests",
    "buggy_code",
    "example",
    "source",
    "model",
    "second",
    "address",
    "name",
    *CHOSEN,
    *WORDING,
)
load_examples = lru_cache(maxsize=8)(load_problem_set)

HELP = {
    "text": "The task, as the model reads it. Say what goes in and what comes out.",
    "tests": "Assert lines, each of which is a test, with the imports that they need; or a pytest file. A "
    f"test of several statements follows a line {TEST_LINE!r}.",
    "buggy_code": "If a program is given, it counts as the first attempt, and the model repairs it.",
    "model": "Models in the folders with which the page was started, the latest first; or an endpoint that "
    "is compatible with OpenAI's, such as Ollama.",
    "protocol": "Wording of the requests. 'cocos' continues plain text; the others need a model that was "
    "trained for chats. The choice follows the model.",
    "agent": "An agent sees which tests fail, and plans its repairs. Its model has to follow instructions.",
    "num_turns": "Largest number of programs that the model writes.",
    "feedback": "What the model is told of its last program: nothing, how many tests pass, or also the first "
    "test that fails. The choice follows the model.",
    "early_stop": "End with the first program that passes the tests. The tests then decide, not the model.",
    "temperature": "0 gives the most likely program, higher values vary it. By default 0, or the agent's.",
    "tokens": "A program that is longer is cut off.",
    "second": "It makes its attempts at the same problem, beside the first model's.",
    "system": "What a chat begins with, such as how to write the program. An agent has its own.",
    "first_turn": "The request of the first attempt in your words; {text} is the task, {tests} its tests.",
    "later_turn": "The request of the later attempts in your words; {feedback} is what the tests tell.",
}


def restore(form: dict[str, Any], models: list[str]) -> None:
    """Fill the fields of a page that was loaded again, or fill them for the first time."""
    state = st.session_state
    if "text" not in state:
        state.update({name: value for name, value in form.items() if value is not None})
    if state.get("model") not in (*models, ENDPOINT):
        state["model"] = [*models, ENDPOINT][0]
        state.update(suited_options(state["model"]))


def stored() -> dict[str, Any]:
    """Return the values of the fields."""
    return {name: st.session_state.get(name) for name in FIELDS}


def first_example(sources: list[str]) -> Problem | None:
    """Return the first example of the first source that can be read, if any."""
    for source in sources:
        with suppress(ValueError, OSError):
            return load_examples(source)[0]
    return None


def choose_example(sources: list[str]) -> None:
    """Offer examples; a newly chosen one fills the fields."""
    left, right = st.columns([2, 3])
    st.session_state.setdefault("source", next((name for name in sources if Path(name).is_file()), None))
    source = left.selectbox("Examples from", sources, key="source", help="Files of problems and public sets.")
    if not source:
        return
    try:
        problems = {problem.task_id: problem for problem in load_examples(source)}
    except (ValueError, OSError) as error:
        show_error("No examples", error)
        return
    name = right.selectbox(
        "Example",
        list(problems),
        index=None,
        format_func=lambda task_id: example_title(problems[task_id]),
        key=f"of {source}",
        placeholder="Choose a problem, or type your own below",
        help="It fills the fields below, which can be changed.",
    )
    if name and st.session_state.get("example_name") != (source, name):
        st.session_state.update(as_typed(problems[name]), example=problems[name])
    st.session_state["example_name"] = (source, name)


def example_title(problem: Problem) -> str:
    """Return the name of a problem and the first words of its task."""
    words = textwrap.shorten(problem.text, 70, placeholder=" ...")
    return f"{problem.task_id}: {problem.entry_point + ': ' if problem.entry_point else ''}{words}"


def models_of(page: Shared) -> list[str]:
    """Return the folders with a model or an adapter, the latest first."""
    roots = page.options.roots
    found = find_folders(roots, "*config.json", "*.safetensors")
    return [
        name
        for name, folder in found.items()
        if (folder / "config.json").is_file() or _has_base(folder / "adapter_config.json", roots)
    ]


def _has_base(adapter_config: Path, roots: list[str]) -> bool:
    """Return whether this is an adapter whose base model is below a root, or a model of the hub."""
    if not adapter_config.is_file():
        return False
    base = str(json.loads(adapter_config.read_text(encoding="utf-8")).get("base_model_name_or_path"))
    if not Path(base).exists():
        return base.count("/") == 1 and not base.startswith((".", "/", "~"))
    return any(Path(base).resolve().is_relative_to(Path(root).resolve()) for root in roots)


def suited_options(model: str) -> dict[str, Any]:
    """Return the protocol, the feedback, the agent (None: any) and the attempts that suit a model.

    A model that was trained here gets those of its training. A chat model gets a chat with feedback, and any
    other model the plain transcript that it can continue.
    """
    folder, record = Path(model), {}
    if model != ENDPOINT and (folder / "run.json").is_file():
        record = json.loads((folder / "run.json").read_text(encoding="utf-8")).get("options", {})
    chats = is_chat_model(model)
    protocol = record.get("protocol", "chat" if chats else "cocos")
    feedback = record.get("feedback", "error" if chats else "none")
    return {
        "protocol": protocol if protocol in protocols_of(model) else "cocos",
        "feedback": feedback,
        "agent": record.get("agent"),
        "num_turns": max(2, min(record.get("num_turns", 3 if chats else 2), MAX_ATTEMPTS)),
    }


def is_chat_model(model: str) -> bool:
    """Return whether a model has a chat template; an endpoint is taken to have one."""
    if model == ENDPOINT or (Path(model) / "chat_template.jinja").is_file():
        return True
    settings = Path(model) / "tokenizer_config.json"
    return settings.is_file() and bool(json.loads(settings.read_text(encoding="utf-8")).get("chat_template"))


def protocols_of(model: str) -> list[str]:
    """Return the protocols that a model can be asked in; `cocos-fewshot` needs a file of solved problems."""
    is_possible = {name: is_chat_model(model) or not PROTOCOLS[name].is_chat for name in PROTOCOLS}
    return [name for name in PROTOCOLS if is_possible[name] and name != "cocos-fewshot"]


def _follow_model() -> None:
    suited = suited_options(st.session_state["model"])
    followed = {name: suited[name] for name in ("protocol", "feedback", "agent")}
    st.session_state.update({name: value for name, value in followed.items() if value is not None})


def choose_model(page: Shared, models: list[str]) -> tuple[dict[str, Any], str]:
    """Return the options of test.py that name the model, and a typed API key."""
    model = st.selectbox(
        "Model", [*models, ENDPOINT], key="model", on_change=_follow_model, help=HELP["model"]
    )
    if model != ENDPOINT:
        return {"model_name_or_path": model}, ""
    # Only addresses given at start get the key in the environment, and remote visitors type no others.
    key, addresses = "", page.options.base_urls + ([] if page.token else [OTHER_ADDRESS])
    if st.session_state.get("address") not in addresses:
        st.session_state.pop("address", None)
    address = st.selectbox("Address", addresses, key="address", help="Where the endpoint listens.")
    if address == OTHER_ADDRESS:
        address = st.text_input("Other address, up to /v1", placeholder="http://localhost:11434/v1")
        key = st.text_input("API key, kept in memory only", type="password") or "none"
    name = st.text_input("Name of the model at the endpoint", key="name", help="Such as qwen2.5-coder:0.5b.")
    return {"model_name_or_path": name, "base_url": address or "missing", "generator": "api"}, key


def choose_second(models: list[str]) -> dict[str, Any] | None:
    """Return the options that differ for a second model, in a protocol that suits it; None for no second."""
    state = st.session_state
    if state.get("second") not in models:
        state["second"] = NO_SECOND
    second = st.selectbox("Second model", [NO_SECOND, *models], key="second", help=HELP["second"])
    if second == NO_SECOND:
        return None
    wanted = state["protocol"]
    protocol = wanted if wanted in protocols_of(second) else suited_options(second)["protocol"]
    return {"model_name_or_path": second, "generator": "transformers", "base_url": None, "protocol": protocol}


def choose_wording(page: Shared, protocol: str) -> dict[str, Any]:
    """Return the options of the visitor's own messages, which stand in files."""
    is_chat, options = PROTOCOLS[protocol].is_chat, {}
    with st.expander("Own wording", expanded=any(st.session_state.get(name) for name in WORDING)):
        limit = MAX_CHARACTERS
        labels = ("System message", "First request", "Later requests")
        system, first, later = (
            st.text_area(label, key=name, height=80, max_chars=limit, help=HELP[name]).strip()
            for label, name in zip(labels, WORDING, strict=True)
        )
    if system:
        options["system_prompt"] = page.wording_file("system.txt", system)
    if first or later:
        wording = {"first_turn": first, "later_turn": later, "is_chat": is_chat}
        options["prompt_file"] = page.wording_file("wording.yaml", yaml.safe_dump(wording))
        options["protocol"] = PromptOptions.protocol  # the default, which the file replaces
    return options


def choose_options(model: str) -> dict[str, Any]:
    """Return the other options of test.py that the fields set."""
    state = st.session_state
    options: dict[str, Any] = {}
    protocols, agents = protocols_of(model), list(get_args(Agent))
    if state.get("protocol") not in protocols:
        state["protocol"] = protocols[0]
    if not PROTOCOLS[state["protocol"]].is_chat:
        agents.remove("tools")  # calls of tools are messages of a chat
    if state.get("agent") not in agents:
        state["agent"] = "none"
    state.setdefault("num_turns", 2)
    state.setdefault("early_stop", True)
    state.setdefault("tokens", 256)
    first, second, third = st.columns(3)
    options["protocol"] = first.selectbox("Protocol", protocols, key="protocol", help=HELP["protocol"])
    options["agent"] = second.selectbox("Agent", agents, key="agent", help=HELP["agent"])
    options["num_turns"] = third.number_input(
        "Attempts", 1, MAX_ATTEMPTS, key="num_turns", help=HELP["num_turns"]
    )
    is_agent = options["agent"] != "none"
    kinds = list(get_args(Feedback))
    if is_agent:
        first.selectbox("Feedback", [OF_AGENT], disabled=True, help=HELP["feedback"])
    else:
        options["feedback"] = first.selectbox("Feedback", kinds, key="feedback", help=HELP["feedback"])
    degree = second.number_input(
        "Temperature", 0.0, 2.0, None, 0.1, key="temperature", placeholder="default", help=HELP["temperature"]
    )
    options["temperature"] = None if degree is None else [degree]
    options["max_completion_length"] = third.number_input(
        "Tokens per attempt", 1, MAX_NEW_TOKENS, key="tokens", help=HELP["tokens"]
    )
    stops = st.checkbox(
        "Stop when the tests pass", key="early_stop", disabled=is_agent, help=HELP["early_stop"]
    )
    return options | {"early_stop": bool(stops) and not is_agent}
