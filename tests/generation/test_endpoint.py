"""The endpoint generator against a local server that is healthy, busy, broken, slow or malformed."""

import json
import os
import sys
import threading
from dataclasses import replace

import pytest

from cocos.agents.graphs import play_with_agent
from cocos.agents.words import TOOLS, agent_protocol
from cocos.config.eval_config import EvalConfig
from cocos.evaluation.generator import open_generator
from cocos.evaluation.sample_rows import trajectory_to_row
from cocos.generation.endpoint import EndpointGenerator
from cocos.generation.retry import KeyRing, RetryPolicy, read_keys
from cocos.prompts import named_protocol
from cocos.rollout import rollout
from cocos.trajectories import Rules, begin
from tests.support.commands import command, free_port
from tests.support.endpoint_server import hang_up, raw, serve, slow, status, streamed, text, tool_calls
from tests.support.paths import ROOT

KEYS = ["sk-first_0123456789", "sk-second_0123456789"]
RIGHT = "def double(x):\n    return 2 * x\n"
WRONG = "def double(x):\n    return x\n"


@pytest.fixture
def endpoint():
    with serve() as running:
        yield running


def generator(endpoint, keys=KEYS[:1], retries=3, base_delay_s=0.01, timeout_s=20.0, **kwargs):
    return EndpointGenerator(
        "m",
        endpoint.base_url,
        keys,
        retries=RetryPolicy(retries, base_delay_s),
        timeout_s=timeout_s,
        **kwargs,
    )


def ask(generator, count=1, temperature=0.0, seeds=None):
    prompts = [generator.start(f"prompt {i}", False) for i in range(count)]
    return generator.generate(prompts, temperature, seeds)


def test_two_plain_turns_are_one_growing_prompt(endpoint, problem, executor):
    endpoint.behaviours = [text(WRONG), text(RIGHT)]
    words = named_protocol("cocos")
    [trajectory] = rollout(begin([problem]), generator(endpoint), executor, words, 2)
    first = words.first_turn(problem)
    assert [request["path"] for request in endpoint.requests] == ["/v1/completions"] * 2
    assert [body["prompt"] for body in endpoint.bodies] == [
        first,
        f"{first}{WRONG}[DONE]{words.later_turn()}",
    ]
    assert all(body["stop"] == ["[DONE]"] for body in endpoint.bodies)
    assert [turn.result.all_passed for turn in trajectory.turns] == [False, True]
    completion = trajectory.turns[0].completion
    assert (completion.num_prompt_tokens, completion.num_completion_tokens) == (11, 5)


def test_two_turns_of_a_chat_are_sent_as_messages(endpoint, problem, executor):
    endpoint.behaviours = [text(f"Well:\n```python\n{WRONG}```"), text(f"```python\n{RIGHT}```")]
    words = named_protocol("repair")
    [trajectory] = rollout(begin([problem]), generator(endpoint), executor, words, 2)
    assert {request["path"] for request in endpoint.requests} == {"/v1/chat/completions"}
    first, second = (body["messages"] for body in endpoint.bodies)
    assert first == [{"role": "user", "content": words.first_turn(problem)}]
    assert second == [
        *first,
        {"role": "assistant", "content": f"Well:\n```python\n{WRONG}```"},
        {"role": "user", "content": words.later_turn()},
    ]
    assert [turn.result.all_passed for turn in trajectory.turns] == [False, True]


def play_tools(endpoint, problem, executor):
    words = agent_protocol(named_protocol("chat").with_system("Be brief."), "tools", True)
    rules = Rules(temperatures=(0.7, 0.5), seed=1)
    [trajectory] = play_with_agent(
        begin([problem]), generator(endpoint), executor, words, 4, rules, "tools", 3
    )
    return words, trajectory


def test_tool_calls_are_sent_and_read_in_openais_format(endpoint, problem, executor):
    code = json.dumps({"code": WRONG, "reason": "a guess"})
    endpoint.behaviours = [
        tool_calls(("run_code", code), ("run_code", "{}"), content="Let me see."),
        tool_calls(("run_code", "{"), finish_reason="stop"),
        text("It is done."),
        tool_calls(("submit", json.dumps({"code": RIGHT}))),
    ]
    words, trajectory = play_tools(endpoint, problem, executor)
    assert [turn.step.node for turn in trajectory.turns] == ["run_code", "refuse", "refuse", "submit"]
    assert [turn.code for turn in trajectory.turns] == [WRONG, WRONG, WRONG, RIGHT]
    first, second, third, last = endpoint.bodies
    assert all(body["tools"] == list(TOOLS) for body in endpoint.bodies)
    assert [body["tool_choice"] for body in endpoint.bodies] == ["required", "auto", "auto", "auto"]
    assert [body["temperature"] for body in endpoint.bodies] == [0.7, 0.5, 0.5, 0.5]
    opening = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": words.first_turn(problem)},
    ]
    assert first["messages"] == opening
    # One call is answered: the others of the answer are dropped.
    *_, called, answered = second["messages"]
    [call] = called.pop("tool_calls")
    assert called == {"role": "assistant", "content": "Let me see."}
    assert (call["type"], call["function"]["name"], json.loads(call["function"]["arguments"])) == (
        "function",
        "run_code",
        {"code": WRONG, "reason": "a guess"},
    )
    assert (answered["role"], answered["tool_call_id"]) == ("tool", call["id"])
    assert answered["content"] == trajectory.turns[1].feedback and "1 of the 3 tests" in answered["content"]
    assert third["messages"][-1]["role"] == "tool" and "not valid JSON" in third["messages"][-1]["content"]
    # Words without a call are answered by the user.
    assert [message["role"] for message in last["messages"][-2:]] == ["assistant", "user"]
    assert "it calls no tool" in last["messages"][-1]["content"]
    turn = trajectory.turns[0]
    assert (turn.completion.num_prompt_tokens, turn.completion.num_completion_tokens) == (70, 9)
    assert turn.completion.text.startswith('Let me see.\n<tool_call>\n{"name": "run_code", "arguments": ')
    assert turn.completion.error is None and turn.completion.key == 1


def test_an_answer_is_streamed_to_one_who_reads_along_and_is_the_same(endpoint):
    endpoint.behaviours = [streamed("def f():\n", "    return 1", "\n"), text("def f():\n    return 1\n")]
    texts, watched = [], generator(endpoint)
    watched.on_text = texts.append
    [completion] = ask(watched)
    [whole] = ask(generator(endpoint))
    assert replace(completion, duration_s=0.0) == replace(whole, duration_s=0.0)
    assert texts == ["def f():\n", "def f():\n    return 1", "def f():\n    return 1\n", texts[2]]
    first, second = endpoint.bodies
    assert first.pop("stream") and first.pop("stream_options") == {"include_usage": True}
    assert first == second


def test_a_call_of_a_tool_is_streamed_in_pieces(endpoint, problem, executor):
    arguments = json.dumps({"code": RIGHT})
    endpoint.behaviours = [
        streamed("Let me see.", (0, "submit", None), (0, None, arguments[:9]), (0, None, arguments[9:]))
    ]
    watched = generator(endpoint)
    watched.on_text = lambda text: None
    words = agent_protocol(named_protocol("chat"), "tools")
    [trajectory] = play_with_agent(begin([problem]), watched, executor, words, 1, Rules(), "tools", 3)
    assert [turn.step.node for turn in trajectory.turns] == ["submit"] and trajectory.turns[0].code == RIGHT
    assert trajectory.turns[0].completion.text.startswith("Let me see.\n<tool_call>\n")


def test_a_stream_that_breaks_off_is_requested_again_and_one_who_reads_along_can_end_it(endpoint):
    endpoint.behaviours = [streamed("def", is_cut=True), streamed("def f", finish_reason="length")]
    watched = generator(endpoint)
    watched.on_text = lambda text: None
    [completion] = ask(watched)
    assert (completion.text, completion.is_truncated, completion.error) == ("def f", True, None)

    def stop(text):
        raise InterruptedError(text)

    watched.on_text = stop
    with pytest.raises(InterruptedError, match="def f"):
        ask(watched)


def test_a_completion_names_the_key_that_served_it_by_its_number(endpoint):
    endpoint.behaviours = [status(429, {"Retry-After": "60"}), text(RIGHT)]
    [completion] = ask(generator(endpoint, keys=KEYS))
    assert completion.key == KEYS.index(endpoint.keys[-1]) + 1 == 2
    assert not any(key in repr(completion) for key in KEYS)


def test_without_a_key_none_is_named_counted_or_hidden(endpoint):
    endpoint.behaviours = [text(RIGHT), status(401, message="none given")]
    keyless = generator(endpoint, keys=[])
    [completion] = ask(keyless)
    assert completion.key is None and endpoint.keys == ["none"]
    with pytest.raises(ValueError, match="wants an API key; set one in the variable of --api_key_env"):
        ask(keyless)


def test_done_is_restored_only_where_the_stop_string_ended_the_text(endpoint):
    endpoint.behaviours = [
        text("x = 1"),
        text("x = 1\n", "length"),
        text("x = 1\n[DONE]\nmore"),
        text("x = 1\n"),
    ]
    answers = [ask(generator(endpoint))[0] for _ in range(4)]
    assert [a.text for a in answers] == ["x = 1", "x = 1\n", "x = 1\n[DONE]", "x = 1\n[DONE]"]
    assert [a.is_truncated for a in answers] == [False, True, False, False]


def test_temperature_length_and_seed_reach_the_endpoint(endpoint):
    endpoint.behaviours = [text(RIGHT)]
    limited = generator(endpoint, max_completion_length=33, concurrency=1)
    ask(limited, 2, temperature=0.7, seeds=[5, 2**40 + 1])
    ask(limited, temperature=0.0, seeds=[5])
    names = ("temperature", "max_tokens", "seed", "model")
    assert [tuple(body.get(name) for name in names) for body in endpoint.bodies] == [
        (0.7, 33, 5, "m"),
        (0.7, 33, 1, "m"),
        (0.0, 33, None, "m"),
    ]


def test_neutral_values_replace_the_checkpoints_own_truncation_and_penalty(endpoint):
    """A server of checkpoints applies those of generation_config.json to requests without these values."""
    endpoint.behaviours = [text(RIGHT)]
    ask(generator(endpoint), temperature=0.0)
    ask(generator(endpoint), temperature=0.7, seeds=[5])
    names = ("top_p", "top_k", "repetition_penalty")
    assert [tuple(body[name] for name in names) for body in endpoint.bodies] == [(1.0, -1, 1.0)] * 2


def detail(handler, request):
    """Refuse a request in the words and the format of transformers' server."""
    handler.reply(b'{"detail": "Unexpected fields in the request: {\'top_k\'}"}', 422, {})


@pytest.mark.parametrize("refuse", [status(400, message="property 'top_k' is unsupported"), detail])
def test_an_endpoint_that_refuses_a_neutral_value_is_asked_without_them_from_then_on(endpoint, refuse):
    def behave(handler, request):
        answer = refuse if "top_k" in request["body"] else text(RIGHT)
        answer(handler, request)

    endpoint.behaviours = [behave]
    strict = generator(endpoint, concurrency=1)
    assert [c.error for c in ask(strict, 3)] == [None] * 3
    assert ["top_k" in body for body in endpoint.bodies] == [True, False, False, False]
    assert [body["top_p"] for body in endpoint.bodies] == [1.0] * 4


def test_an_error_in_another_format_than_openais_is_told_in_the_servers_words(endpoint):
    endpoint.behaviours = [detail]
    [completion] = ask(generator(endpoint))
    assert "422" in completion.error and "Unexpected fields in the request" in completion.error


MALFORMED = {
    "500": status(500),
    "503": status(503, {"Retry-After": "0"}),
    "429": status(429, {"Retry-After": "0"}),
    "408": status(408),
    "no connection": hang_up,
    "a truncated body": raw(b'{"choices": [{"text": "x', length=500),
    "truncated JSON": raw(b'{"choices": [{"text": "x'),
    "not JSON": raw(b"<html>gateway</html>"),
    "JSON of another type": raw(b'"later"'),
    "no choices": raw(b'{"choices": []}'),
    "a choice of another type": raw(b'{"choices": [7]}'),
    "no text": raw(b'{"choices": [{"finish_reason": "stop"}]}'),
    "an error as finish_reason": text("x", "error"),
}


@pytest.mark.parametrize("failure", MALFORMED)
def test_transient_failures_are_retried(endpoint, failure):
    endpoint.behaviours = [MALFORMED[failure], MALFORMED[failure], text(RIGHT)]
    [completion] = ask(generator(endpoint))
    assert completion.text == f"{RIGHT}[DONE]" and completion.error is None
    assert len(endpoint.requests) == 3


def chat_choice(finish_reason="stop", **fields):
    message = {"role": "assistant", "content": f"```python\n{RIGHT}```"} | fields
    return {"choices": [{"index": 0, "finish_reason": finish_reason, "message": message}]}


def call_of(arguments, name="submit"):
    return [{"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}]


OTHER_ENDS = ("", "eos", "eos_token", "end_turn", "stop_sequence", "STOP", "content_filter", "function_call")
ANSWERED = {f"finish_reason {reason!r}": chat_choice(reason) for reason in (None, *OTHER_ENDS)} | {
    "content in parts": chat_choice(
        content=[{"type": "text", "text": f"```python\n{RIGHT}"}, {"text": "```"}]
    ),
    "usage null": chat_choice() | {"usage": None},
    "reasoning beside the content": chat_choice(reasoning_content="hm"),
    "no tool calls": chat_choice(tool_calls=[]),
}


@pytest.mark.parametrize("dialect", ANSWERED)
def test_every_answer_that_an_endpoint_gives_in_its_own_words_is_an_answer(
    endpoint, problem, executor, dialect
):
    endpoint.behaviours = [raw(json.dumps(ANSWERED[dialect]).encode())]
    chat = named_protocol("chat")
    [trajectory] = rollout(begin([problem]), generator(endpoint), executor, chat, 1)
    assert trajectory.turns[0].result.is_right and len(endpoint.requests) == 1


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_a_thought_beside_the_content_is_kept_in_the_row_and_its_tokens_are_counted_apart(
    endpoint, problem, executor, name
):
    usage = {"prompt_tokens": 9, "completion_tokens": 40, "total_tokens": 49}
    usage |= {"completion_tokens_details": {"reasoning_tokens": 30}}
    answers = [chat_choice(**{name: "Twice."}), chat_choice("length", content="", **{name: "Hm, twice"})]
    endpoint.behaviours = [raw(json.dumps(answer | {"usage": usage}).encode()) for answer in answers]
    kwargs = {"enable_thinking": True}
    asked, chat = generator(endpoint, chat_template_kwargs=kwargs), named_protocol("chat")
    [played] = rollout(begin([problem]), asked, executor, chat, 2, Rules(keeps_truncated=True))
    first, second = trajectory_to_row(played)["turns"]
    assert first["is_right"] and first["thought"] == "Twice." and "Twice" not in first["completion"]
    assert (first["num_thought_tokens"], first["num_completion_tokens"]) == (30, 40)
    assert (second["thought"], second["completion"], second["source"]) == ("Hm, twice", "", "thought")
    assert [body["chat_template_kwargs"] for body in endpoint.bodies] == [kwargs] * 2


@pytest.mark.parametrize(
    ("fields", "text_", "is_truncated"),
    [
        ({"content": "", "reasoning_content": "I think", "finish_reason": "length"}, "", True),
        ({"content": "```python\ndef dou", "finish_reason": "max_tokens"}, "```python\ndef dou", True),
        ({"content": None, "refusal": "I cannot."}, "I cannot.", False),
        ({"content": None, "finish_reason": "content_filter"}, "", False),
    ],
)
def test_an_answer_without_a_program_is_an_answer(endpoint, fields, text_, is_truncated):
    endpoint.behaviours = [raw(json.dumps(chat_choice(**fields)).encode())]
    asked = generator(endpoint)
    [completion] = asked.generate([asked.start("p", True)], 0.0)
    assert (completion.text, completion.is_truncated, completion.error) == (text_, is_truncated, None)


INVALID = {
    "model overloaded": {"error": {"message": "model overloaded", "code": 503}},
    "no choice in the answer": {"choices": None},
    "no message in the answer": {"choices": [{"index": 0, "finish_reason": "stop", "message": None}]},
}


@pytest.mark.parametrize("reason", INVALID)
def test_a_response_without_an_answer_is_that_samples_failure_in_the_servers_words(endpoint, reason):
    endpoint.behaviours = [raw(json.dumps(INVALID[reason]).encode())]
    asked = generator(endpoint, retries=6)
    [completion] = asked.generate([asked.start("p", True)], 0.0)
    assert reason in completion.error and len(endpoint.requests) == 3


@pytest.mark.parametrize(
    ("calls", "is_right"),
    [
        ({"tool_calls": call_of({"code": RIGHT})}, True),
        ({"tool_calls": call_of(json.dumps({"code": RIGHT}))}, True),
        ({"tool_calls": call_of(json.dumps(json.dumps({"code": RIGHT})))}, True),
        ({"function_call": {"name": "submit", "arguments": json.dumps({"code": RIGHT})}}, True),
        ({"tool_calls": call_of({"code": "# \ud835\n" + RIGHT})}, True),
        ({"tool_calls": call_of("")}, False),
        ({"tool_calls": call_of("null")}, False),
        ({"tool_calls": call_of(["x"])}, False),
        ({"tool_calls": call_of("{}", name=None)}, False),
        ({"tool_calls": [{"id": "1", "type": "function"}]}, False),
    ],
)
def test_a_call_is_read_in_every_form_of_its_arguments(endpoint, problem, executor, calls, is_right):
    endpoint.behaviours = [raw(json.dumps(chat_choice("tool_calls", content=None, **calls)).encode())]
    tools = agent_protocol(named_protocol("chat"), "tools")
    [played] = play_with_agent(begin([problem]), generator(endpoint), executor, tools, 2, Rules(), "tools", 3)
    assert played.turns[-1].result.is_right is is_right and played.turns[0].completion.error is None
    assert [turn.step.node for turn in played.turns if turn.step] == (
        ["submit"] if is_right else ["refuse"] * 2
    )


def test_a_lone_surrogate_ends_nothing_and_is_replaced(endpoint, problem, executor):
    wrong = "```python\ndef double(x):\n    raise ValueError('\ud835')  # \ud835\n```"
    endpoint.behaviours = [raw(json.dumps(chat_choice(content=wrong)).encode())]
    chat = named_protocol("chat")
    asked = generator(endpoint)
    [played] = rollout(begin([problem]), asked, executor, chat, 2, Rules(feedback="error"))
    assert [turn.completion.has_replaced for turn in played.turns] == [True, True]
    assert "'\ufffd')  # \ufffd" in played.turns[0].code
    assert trajectory_to_row(played)["turns"][0]["has_replaced"] is True
    prompt = asked.start("message with \ud835", True, system="and \ud835")
    assert "message with \ufffd" in asked.show(prompt) and "and \ufffd" in asked.show(prompt)


def test_a_request_that_times_out_is_retried(endpoint):
    endpoint.behaviours = [slow(1.5), text(RIGHT)]
    [completion] = ask(generator(endpoint, timeout_s=0.5))
    assert completion.error is None and len(endpoint.requests) == 2


@pytest.mark.parametrize("failure", ["500", "truncated JSON", "no connection"])
def test_a_persistent_failure_is_an_infrastructure_failure(endpoint, problem, executor, failure):
    endpoint.behaviours = [MALFORMED[failure]]
    [trajectory] = rollout(
        begin([problem]), generator(endpoint, retries=2), executor, named_protocol("cocos"), 2
    )
    assert len(endpoint.requests) == 3
    assert all(turn.result.is_infra_failure for turn in trajectory.turns)
    assert trajectory.turns[0].completion.error in trajectory.turns[0].result.infra_error


def test_a_rejected_request_fails_alone_and_is_not_retried(endpoint):
    too_long = status(400, message="maximum context length")
    endpoint.behaviours = [
        lambda handler, request: (too_long if "prompt 1" in request["body"]["prompt"] else text(RIGHT))(
            handler, request
        )
    ]
    completions = ask(generator(endpoint), 3)
    assert [c.error is None for c in completions] == [True, False, True]
    assert "maximum context length" in completions[1].error and len(endpoint.requests) == 3


@pytest.mark.parametrize("code", [401, 403, 404])
def test_a_rejected_key_or_an_unknown_model_stops_the_run_with_a_remedy(endpoint, code):
    endpoint.behaviours = [status(code, message=f"{KEYS[0]} is wrong")]
    with pytest.raises(
        ValueError, match="check --model_name_or_path" if code == 404 else "--api_key_env"
    ) as caught:
        ask(generator(endpoint), 3)
    assert KEYS[0] not in str(caught.value) and "[key 1] is wrong" in str(caught.value)


def test_a_dead_endpoint_stops_the_run_with_its_url_and_the_reason():
    url = f"http://127.0.0.1:{free_port()}/v1"
    dead = EndpointGenerator("m", url, KEYS, retries=RetryPolicy(6, base_delay_s=0.01))
    with pytest.raises(
        ValueError, match=f"nothing answers at the endpoint {url} .*Connection refused.*; start"
    ):
        ask(dead, 3)


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/html"}])
def test_a_web_page_in_place_of_an_endpoint_stops_the_run_after_three_requests(endpoint, headers):
    endpoint.behaviours = [raw(b"<!doctype html><title>Log in</title>", headers)]
    with pytest.raises(ValueError, match=r"is no endpoint: it answers with a web page .*; check --base_url"):
        ask(generator(endpoint, retries=6))
    assert len(endpoint.requests) == 3


def test_a_web_page_after_an_answer_is_a_failure_of_that_request(endpoint):
    endpoint.behaviours = [text(RIGHT), raw(b"<html>bad gateway</html>")]
    asked = generator(endpoint, retries=3)
    assert ask(asked)[0].error is None
    assert "web page" in ask(asked)[0].error and len(endpoint.requests) == 4


def test_a_user_who_waits_for_the_first_answer_is_told_once(endpoint, monkeypatch):
    monkeypatch.setattr("cocos.generation.endpoint.SILENCE_S", 0.2)
    endpoint.behaviours = [slow(1.0), text(RIGHT), slow(1.0), text(RIGHT)]
    lines = []
    asked = generator(endpoint, timeout_s=0.6, say=lines.append)
    ask(asked)
    assert len(lines) == 1 and f"{asked.url} has given no answer for" in lines[0]
    ask(asked)  # it has answered before, so that this silence is a slow answer
    assert len(lines) == 1


def test_a_rate_limited_key_cools_down_while_the_other_is_used(endpoint):
    endpoint.behaviours = [status(429, {"Retry-After": "30"}), text(RIGHT)]
    completions = ask(generator(endpoint, KEYS, concurrency=1), 4)
    assert [c.error for c in completions] == [None] * 4
    assert endpoint.keys == [KEYS[0]] + [KEYS[1]] * 4


def test_a_single_key_waits_for_the_requested_delay(endpoint):
    endpoint.behaviours = [
        status(429, {"Retry-After": "60", "retry-after-ms": "400"}),
        status(503, {"Retry-After": "0.3"}),
        text(RIGHT),
    ]
    ask(generator(endpoint))
    first, second, third = (request["at"] for request in endpoint.requests)
    assert second - first >= 0.4 and third - second >= 0.3


def test_keys_are_used_in_rotation(endpoint):
    endpoint.behaviours = [text(RIGHT)]
    ask(generator(endpoint, KEYS, concurrency=1), 4)
    assert endpoint.keys == [*KEYS, *KEYS]


def test_exactly_as_many_requests_are_in_flight_as_concurrency_allows(endpoint):
    """Each response waits for two others, so fewer requests in flight would never be answered."""
    three, lock, now = threading.Barrier(3, timeout=180), threading.Lock(), [0, 0]

    def behave(handler, request):
        with lock:
            now[:] = now[0] + 1, max(now[1], now[0] + 1)
        three.wait()
        with lock:
            now[0] -= 1
        text(request["body"]["prompt"])(handler, request)

    endpoint.behaviours = [behave]
    completions = ask(generator(endpoint, concurrency=3), 9)
    assert [c.text for c in completions] == [f"prompt {i}" for i in range(9)]
    assert now[1] == 3


def test_a_key_is_available_again_after_its_cool_down():
    time = [100.0]
    key_ring = KeyRing(KEYS, clock=lambda: time[0])
    key_ring.cool_down(0, 5)
    key_ring.cool_down(0, 1)  # does not shorten the first
    assert [key_ring.acquire() for _ in range(3)] == [1, 1, 1]
    time[0] = 105.0
    assert [key_ring.acquire() for _ in range(3)] == [0, 0, 0]  # the less used key
    assert key_ring.redact(f"{KEYS[1]}, {KEYS[0]}.") == "[key 2], [key 1]."


def test_a_delay_is_the_requested_one_or_doubles_and_has_a_limit():
    policy = RetryPolicy(max_delay_s=10.0)
    assert [policy.delay_s(9, requested) for requested in (7.0, -5.0, 1e9)] == [7.0, 0.0, 10.0]
    assert all(0.5 <= policy.delay_s(number, None) / 2**number <= 1.5 for number in range(3))


def test_keys_are_read_from_the_environment_or_else_from_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SOME_KEY", raising=False)
    assert read_keys("SOME_KEY") == []
    (tmp_path / ".env").write_text("SOME_KEY='a, b,'\nOTHER=c\n")
    assert read_keys("SOME_KEY") == ["a", "b"]
    assert "SOME_KEY" not in os.environ
    monkeypatch.setenv("SOME_KEY", "d")
    assert read_keys("SOME_KEY") == ["d"]


def evaluate(folder, base_url, *options, **environment):
    data = folder / "problems.jsonl"
    row = {"task_id": 1, "text": "Double a number.", "code": RIGHT, "test_list": ["assert double(2) == 4"]}
    data.write_text("\n".join(json.dumps(row | {"task_id": i}) for i in range(4)))
    words = (sys.executable, ROOT / "test.py", "--test_data", data, "--output_dir", folder / "out")
    words += ("--model_name_or_path", "m", "--generator", "api", "--base_url", base_url, *options)
    return command(*words, cwd=folder, **environment)


@pytest.mark.processes
def test_no_failure_writes_a_key_anywhere(endpoint, tmp_path):
    """The endpoint repeats the keys in its errors, and the client logs at debug level."""
    repeated = status(429, {"Retry-After": "0"}, message=f"slow down, {KEYS[0]}, {KEYS[1]}")
    answer = [text(RIGHT), repeated, repeated]
    endpoint.behaviours = [lambda h, r: answer[len(endpoint.requests) % 3](h, r)]
    keys = {"MY_KEYS": ",".join(KEYS), "OPENAI_LOG": "debug"}
    options = ("--api_key_env", "MY_KEYS", "--num_turns", "1", "--max_retries", "0", "--max_infra_share", "1")
    run = evaluate(tmp_path, endpoint.base_url, *options, **keys)
    assert run.returncode == 0, run.stderr
    samples = (tmp_path / "out/samples.jsonl").read_text()
    assert "[key 1]" in samples and "slow down" in samples
    assert set(endpoint.keys) == set(KEYS)
    endpoint.behaviours = [status(401, message=f"wrong: {KEYS[0]} {KEYS[1]}")]
    rejected = evaluate(tmp_path, endpoint.base_url, *options, "--resume", **keys)
    assert rejected.returncode != 0 and "wrong: [key 1] [key 2]" in rejected.stderr
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    written += [output.encode() for process in (run, rejected) for output in (process.stdout, process.stderr)]
    assert len(written) > 8
    for key in KEYS:
        assert not any(key.encode() in data for data in written)


def test_a_missing_key_is_an_error_unless_a_base_url_is_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"model_name_or_path": "m", "test_data": "x", "output_dir": "y", "generator": "api"}
    options["api_key_env"] = "NO_SUCH_KEY"
    with pytest.raises(ValueError, match="no key in NO_SUCH_KEY, neither in the environment"):
        open_generator(EvalConfig(**options))
    assert open_generator(EvalConfig(**options, base_url="http://127.0.0.1:9/v1")).key_ring.keys == ["none"]


def test_the_options_of_an_endpoint_reach_it(monkeypatch):
    monkeypatch.setenv("SOME_KEY", "a,b")
    options = {"api_key_env": "SOME_KEY", "concurrency": 3, "max_retries": 2}
    options |= {"model_name_or_path": "m", "test_data": "x", "output_dir": "y", "generator": "api"}
    generator = open_generator(EvalConfig(**options, max_completion_length=9))
    assert (generator.concurrency, generator.retries.max_retries) == (3, 2)
    assert generator.key_ring.keys == ["a", "b"] and len(generator.clients) == 2
    assert generator.max_completion_length == 9
