"""Every way to carry earlier turns: its prompts are what it says of them."""

import pytest

from cocos.carry import CARRIES, PromptSize, named_carry
from cocos.generation.scripted import ScriptedGenerator
from cocos.prompts import answer, named_protocol
from cocos.rollout import rollout
from cocos.trajectories import Rules, begin

WRONG = "def double(x):\n    return 5"


@pytest.mark.parametrize("carry", CARRIES.values(), ids=CARRIES)
def test_prompts_have_what_the_way_to_carry_says(carry, problem, executor):
    """A token is a character. Every program is the same wrong one."""
    generator = ScriptedGenerator(lambda prompt: answer(WRONG))
    bare = named_protocol("cocos", prompt_tests=0)
    [trajectory] = rollout(begin([problem]), generator, executor, bare, 3, Rules(carry=carry))
    turns = trajectory.turns
    first, *later = prompts = ["".join(map(chr, turn.prompt_ids)) for turn in turns]
    for prompt in later:
        assert prompt.startswith(first.removesuffix(f"\n\n{bare.first_ending}"))
        assert (WRONG in prompt) != carry.starts_anew
        assert (problem.test_list[0] in prompt) == carry.shows_failures
        assert (prompt == first) == carry.is_resampling == turns[1].asks_again(turns[0])
    whole = [prompt + turn.completion.text for prompt, turn in zip(prompts, turns, strict=True)]
    assert all(any(text in covering for covering in carry.covering(whole)) for text in whole)
    # Siblings with other programs have the same prompt only if it has no programs.
    assert (carry.states(prompts) == prompts) == carry.starts_anew
    new = carry.new_tokens(
        [PromptSize(turn.request, len(turn.prompt_ids), len(answer(WRONG))) for turn in turns]
    )
    seen: list[str] = []
    for prompt, text, number in zip(prompts, whole, new, strict=True):
        begun = max((len(before) for before in seen if prompt.startswith(before)), default=0)
        assert number == (0 if any(before.startswith(prompt) for before in seen) else len(prompt) - begun)
        seen.append(text)


def test_trained_turns_share_the_first_of_their_prompts_with_a_transcript_and_else_the_task():
    shared = {
        name: [carry.shared_tokens([100, 160, 220], n) for n in (1, 2, 3)] for name, carry in CARRIES.items()
    }
    assert shared == {
        "transcript": [220, 160, 100],
        "counterexamples": [100, 100, 100],
        "nothing": [100, 100, 100],
    }


def test_an_unknown_way_is_an_error_that_names_the_known_ones():
    with pytest.raises(
        ValueError, match=r"^--carry all is not known; choose one of transcript, counterexamples, "
    ):
        named_carry("all")
