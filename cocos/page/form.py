"""The form of Try: a problem that the visitor chooses or types, a model, and the options that suit it."""

import json
import os
import textwrap
from dataclasses import fields
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, get_args

import streamlit as st

from cocos.carry import CARRIES
from cocos.config.eval_config import EvalConfig
from cocos.dataprep.named_sets import load_problem_set
from cocos.generation.checkpoint_files import adapter_base, is_adapter, tokenizer_source
from cocos.literals import Feedback
from cocos.page.page_options import MAX_ATTEMPTS, MAX_NEW_TOKENS, PageOptions
from cocos.page.shared import find_folders, show_error
from cocos.page.typed_problem import as_typed
from cocos.problems import Problem
from cocos.prompts import PROTOCOLS

ENDPOINT = "the endpoint"
AGENTS = ("none", "reflect", "react", "tools")
MODEL_FILES = ("*config.json", "*.safetensors")
load_examples = lru_cache(maxsize=8)(load_problem_set)
DEFAULTS = {"text": "", "tests": "", "buggy_code": "", "early_stop": True, "max_completion_length": 256}
HELP = {field.name: field.metadata["help"] for field in fields(EvalConfig)} | {
    "source": "Files of problems and public sets.",
    "chosen": "It fills the fields below, which can be changed.",
    "text": "The task, as the model reads it. Say what goes in and what comes out.",
    "tests": "Assert lines, each of which is a test, with the imports that they need; or a pytest file.",
    "buggy_code": "If a program is given, it counts as the first attempt, and the model repairs it.",
    "model": "Models in the folders with which the page was started, the latest of each first.",
    "name": "Such as qwen2.5-coder:0.5b.",
}


def prepare(models: list[str], sources: list[str]) -> None:
    """Give every field a value that it still lacks, and replace a model that is gone."""
    state = st.session_state
    for name, value in DEFAULTS.items():
        state.setdefault(name, value)
    if models and state.get("model") not in models:
        state["model"] = models[0]
        _follow_model(sources)


def _follow_model(sources: list[str]) -> None:
    """Set the options that suit the chosen model, and choose its examples if it has some."""
    state = st.session_state
    state.update(suited_options(state["model"]))
    if source := own_examples(state["model"], sources):
        state["source"] = source


def own_examples(model: str, sources: list[str]) -> str | None:
    """Return the file of examples beside a model, or beside the model from which it was trained."""
    followed: list[str] = []
    while model and model not in followed:
        followed.append(model)
        folder = Path(model).resolve().parent
        for source in filter(os.path.isfile, sources):
            if Path(source).resolve().parent == folder:
                return source
        model = _options_of_training(model).get("model_name_or_path", "")
    return None


def type_problem(sources: list[str]) -> None:
    """Show the fields of the problem; a chosen example fills them."""
    _choose_example(sources)
    st.text_area("What should the program do?", **named("text"), height=90)
    st.text_area("Tests: asserts or a pytest file", **named("tests"), height=120)
    with st.expander("A program to repair", expanded=bool(st.session_state["buggy_code"])):
        st.text_area("Program", **named("buggy_code"), height=140)


def _choose_example(sources: list[str]) -> None:
    state = st.session_state
    left, right = st.columns([2, 3])
    state.setdefault("source", next((name for name in sources if Path(name).is_file()), None))
    source = left.selectbox("Examples from", sources, **named("source"))
    if not source:
        return
    try:
        problems = load_examples(source)
    except (ValueError, OSError) as error:
        show_error("No examples", error)
        return

    def fill() -> None:
        if (number := state[f"of {source}"]) is not None:
            state.update(as_typed(problems[number]), example=problems[number])

    right.selectbox(
        *("Example", range(len(problems)), None, lambda number: example_title(problems[number])),
        key=f"of {source}",
        on_change=fill,
        placeholder="Choose a problem, or type your own below",
        help=HELP["chosen"],
    )


def example_title(problem: Problem) -> str:
    """Return the name of a problem and the first words of its task."""
    words = textwrap.shorten(problem.text, 70, placeholder=" ...")
    return f"{problem.task_id}: {problem.entry_point + ': ' if problem.entry_point else ''}{words}"


def models_of(options: PageOptions) -> list[str]:
    """Return the folders with a model or an adapter as `find_folders` orders them, then the endpoint."""
    found = find_folders(options.roots, *MODEL_FILES)
    models = [name for name, folder in found.items() if _is_model(folder, options.roots)]
    return [*models, ENDPOINT] if options.base_url else models


def model_title(model: str) -> str:
    """Return the folder of a model with the size of its weights, or of an adapter's; the endpoint alone."""
    if model == ENDPOINT:
        return model
    size = sum(path.stat().st_size for path in Path(model).glob("*.safetensors"))
    kind = "adapter, " if (Path(model) / "adapter_config.json").is_file() else ""
    return f"{model} ({kind}{size / 1e6:.3g} MB)"


def _is_model(folder: Path, roots: list[str]) -> bool:
    """Return whether a folder has a model, or an adapter whose base is below a root or on the hub."""
    if not is_adapter(str(folder)):
        return (folder / "config.json").is_file()
    try:
        base = adapter_base(folder)
    except ValueError:  # a damaged file
        return False
    if not Path(base).exists():
        return base.count("/") == 1 and not base.startswith((".", "/", "~"))
    return any(Path(base).resolve().is_relative_to(Path(root).resolve()) for root in roots)


def suited_options(model: str) -> dict[str, Any]:
    """Return the protocol, what later prompts have, and the attempts that suit a model.

    A model that was trained here gets those of its training. A chat model gets the failed tests without its
    program, which it would repeat, and any other model the plain transcript that it can continue.
    """
    record = _options_of_training(model)
    is_chat = _is_chat_model(model)
    protocol = record.get("protocol", "chat" if is_chat else "cocos")
    return {
        "protocol": protocol if protocol in _protocols_of(model) else "cocos",
        "carry": record.get("carry", "counterexamples" if is_chat and not record else "transcript"),
        "feedback": record.get("feedback", "error" if is_chat else "none"),
        "num_turns": max(2, min(record.get("num_turns", 3 if is_chat else 2), MAX_ATTEMPTS)),
    }


def _options_of_training(model: str) -> dict[str, Any]:
    """Return the options of the training that wrote a model's folder; {} if none did."""
    if not (path := Path(model) / "run.json").is_file():
        return {}
    options: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")).get("options", {})
    return options


def _is_chat_model(model: str) -> bool:
    """Return whether a model has a chat template; an endpoint is taken to have one."""
    folder = Path(tokenizer_source(model))
    if model == ENDPOINT or (folder / "chat_template.jinja").is_file():
        return True
    settings = folder / "tokenizer_config.json"
    return settings.is_file() and bool(json.loads(settings.read_text(encoding="utf-8")).get("chat_template"))


def _protocols_of(model: str) -> list[str]:
    """Return the protocols that a model can be asked in; `cocos-fewshot` needs a file of solved problems."""
    is_chat = _is_chat_model(model)
    return [n for n in PROTOCOLS if n != "cocos-fewshot" and (is_chat or not PROTOCOLS[n].is_chat)]


def choose_model(page: PageOptions, models: list[str]) -> dict[str, Any]:
    """Return the options of test.py that name the chosen model."""
    follow = partial(_follow_model, page.examples)
    model = st.selectbox("Model", models, format_func=model_title, on_change=follow, **named("model"))
    if model != ENDPOINT:
        return {"model_name_or_path": model}
    name = st.text_input("Name of the model at the endpoint", **named("name"))
    return {"model_name_or_path": name, "base_url": page.base_url, "generator": "api"}


def choose_options(model: str) -> dict[str, Any]:
    """Return the other options of test.py that the fields set."""
    state = st.session_state
    protocols, agents = _protocols_of(model), list(AGENTS)
    if state.get("protocol") not in protocols:
        state["protocol"] = protocols[0]
    if not PROTOCOLS[state["protocol"]].is_chat:
        agents.remove("tools")  # calls of tools are messages of a chat
    if state.get("agent") not in agents:
        state["agent"] = "none"
    is_agent = state["agent"] != "none"
    left, middle, right = st.columns(3)
    options = {
        "protocol": left.selectbox("Protocol", protocols, **named("protocol")),
        "agent": middle.selectbox("Agent", agents, **named("agent")),
        "num_turns": right.number_input("Attempts", 1, MAX_ATTEMPTS, **named("num_turns")),
        "max_completion_length": right.number_input(
            "Tokens per attempt", 1, MAX_NEW_TOKENS, **named("max_completion_length")
        ),
    }
    carry = left.selectbox("Next prompt", [*CARRIES], **named("carry"), disabled=is_agent)
    feedback = left.selectbox("Feedback", get_args(Feedback), **named("feedback"), disabled=is_agent)
    degrees = ("Temperature", 0.0, 2.0, None, 0.1)
    temperature = middle.number_input(*degrees, **named("temperature"), placeholder="default")
    options["temperature"] = None if temperature is None else [temperature]
    early_stop = st.checkbox("Stop when the tests pass", **named("early_stop"), disabled=is_agent)
    if is_agent:
        return options
    if temperature is None and CARRIES[carry].starts_anew:  # an unchanged prompt is to give another program
        options["temperature"] = [0.0, 0.8][: options["num_turns"]]
    return options | {"carry": carry, "feedback": feedback, "early_stop": early_stop}


def named(key: str) -> dict[str, Any]:
    """Return the name of a field, its help, and that another view does not empty it."""
    return {"key": key, "help": HELP[key], "persist_state": "session"}
