"""The equations, by hand: rewards, returns, advantages."""

from itertools import pairwise
from math import isclose, isfinite

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocos.executor import ExecutionResult, Program, Status, Verdict
from cocos.rewards import (
    Objective,
    Score,
    accumulated_weights,
    advantages,
    grouped_returns,
    kl_penalties,
    leave_one_out,
    random_reward,
    row_advantages,
    to_go_weights,
    trained_advantages,
    trained_turns,
    turn_returns,
    turn_reward,
    zero_spread,
)

CREDITS = ("turn", "trajectory", "last")
INFRA_FAILURE = ExecutionResult((), infra_error="the worker died")

reward = st.floats(0, 1)
gammas = st.floats(0, 1)
bonuses = st.floats(0, 10)
some_turns = st.lists(reward, min_size=2, max_size=4)
quick = settings(max_examples=100, deadline=None, database=None)


def executed(*passed: bool) -> ExecutionResult:
    return ExecutionResult(tuple(Verdict(Status.PASSED if p else Status.FAILED) for p in passed))


def group_advantages(rewards_G_T, credit, gamma, **options):
    """Advantages of one group, as (G, K)."""
    [advantages_G_K] = advantages([[turn_returns(r, credit, gamma, **options) for r in rewards_G_T]])
    return advantages_G_K


def approx(values):
    return pytest.approx(values, abs=1e-12)


# -- r_t --


def test_a_reward_is_a_share_or_nothing_or_their_mean_or_a_number_of_tests():
    kinds = ("fraction", "binary", "mixed", "count")
    for passed, rewards in ((2, [2 / 3, 0.0, 1 / 3, 2.0]), (3, [1.0, 1.0, 1.0, 3.0]), (0, [0.0] * 4)):
        result = executed(*[True] * passed, *[False] * (3 - passed))
        assert [turn_reward(result, kind) for kind in kinds] == rewards


def test_the_fraction_is_the_default_and_an_unknown_kind_names_the_choices():
    assert turn_reward(executed(True, False)) == 0.5
    with pytest.raises(ValueError, match="choose fraction, binary, mixed or count"):
        turn_reward(executed(True), "fine")


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.PASSED])
def test_only_a_passed_test_earns_anything(status):
    result = ExecutionResult((Verdict(status), Verdict(Status.PASSED)))
    assert [turn_reward(result, kind) for kind in ("fraction", "binary", "count")] == [0.5, 0.0, 1.0]


def test_a_test_whose_verdict_the_program_could_have_forged_counts_as_failed_unless_it_is_rewarded():
    marked = Verdict(Status.PASSED, in_child_reason="the candidate's own __eq__ decides")
    result = ExecutionResult((Verdict(Status.PASSED), marked, marked, Verdict(Status.FAILED)))
    kinds = ("fraction", "binary", "count")
    assert [turn_reward(result, kind) for kind in kinds] == [1 / 4, 0.0, 1.0]
    assert [turn_reward(result, kind, reward_in_child=True) for kind in kinds] == [3 / 4, 0.0, 3.0]
    right = ExecutionResult(result.verdicts[:3])
    assert right.all_passed and turn_reward(right, "binary") == 0.0
    assert turn_reward(right, "binary", reward_in_child=True) == 1.0
    failed = ExecutionResult((Verdict(Status.FAILED, in_child_reason="the test awaits"),))
    assert turn_reward(failed, reward_in_child=True) == 0.0


def test_a_program_that_forges_its_verdict_earns_nothing(executor):
    forger = "class Any:\n    __eq__ = lambda *_: True\nasync def f():\n    return Any()"
    [result] = executor.run([Program(forger, ("import asyncio\nassert asyncio.run(f()) == 1",))])
    assert (
        result.all_passed and turn_reward(result) == 0.0 and turn_reward(result, reward_in_child=True) == 1.0
    )


@pytest.mark.parametrize("kind", ["fraction", "binary", "count"])
def test_a_failure_of_the_executor_is_no_reward_of_any_kind(kind):
    assert turn_reward(INFRA_FAILURE, kind) is None


@quick
@given(st.lists(st.booleans(), min_size=1, max_size=9), st.integers(0, 8))
def test_rewards_are_finite_in_range_and_never_fall_when_one_more_test_passes(passed, index):
    better = [p or i == index for i, p in enumerate(passed)]
    for kind, most in (("fraction", 1), ("binary", 1), ("count", len(passed))):
        low, high = turn_reward(executed(*passed), kind), turn_reward(executed(*better), kind)
        assert isfinite(low) and 0 <= low <= high <= most


def test_a_random_reward_depends_on_its_key_alone():
    rewards = [random_reward(executed(False), f"0 {n}") for n in range(1000)]
    assert set(rewards) == {0.0, 1.0} and 440 < sum(rewards) < 560  # 500 within four standard deviations
    assert rewards == [random_reward(executed(True), f"0 {n}") for n in range(1000)]
    assert random_reward(INFRA_FAILURE, "0") is None


# -- returns --


def accumulated(rewards_T, gamma):
    """R = sum_t gamma^(T-t) * (r_t - r_{t-1}), as the paper has it."""
    steps = [now - before for before, now in pairwise([0.0, *rewards_T])]
    return sum(gamma ** (len(steps) - t) * step for t, step in enumerate(steps, start=1))


@quick
@given(some_turns, gammas)
def test_the_weights_of_the_accumulated_reward_are_the_papers_formula(rewards_T, gamma):
    weights = accumulated_weights(len(rewards_T), gamma)
    assert sum(w * r for w, r in zip(weights, rewards_T, strict=True)) == approx(
        accumulated(rewards_T, gamma)
    )


def test_the_accumulated_reward_of_three_turns_by_hand():
    # 0.25 * r_1 + 0.5 * (r_2 - r_1) + (r_3 - r_2): r_1 has 0.25 - 0.5, r_2 has 0.5 - 1
    assert accumulated_weights(3, 0.5) == approx([-0.25, -0.5, 1.0])
    assert accumulated_weights(2, 1.0) == [0.0, 1.0] and accumulated_weights(2, 0.0) == [-1.0, 1.0]


def test_a_turn_of_credit_trajectory_gets_the_terms_that_it_can_influence():
    # T = 2: G_1 = r_2 - (1 - gamma) r_1 = 1.0 - 0.5 * 0.2; G_2 = r_2
    assert turn_returns((0.2, 1.0), "trajectory", 0.5) == approx([0.9, 1.0])
    # G_1 = -0.25 * 0.2 - 0.5 * 0.6 + 1.0; G_2 = -0.5 * 0.6 + 1.0; G_3 = 1.0
    assert turn_returns((0.2, 0.6, 1.0), "trajectory", 0.5) == approx([0.65, 0.7, 1.0])
    assert turn_returns((0.2, 0.6, 1.0), "last", 0.5) == approx([1.0])


def test_the_return_to_go_by_hand():
    # G_1 = 0.2 + 0.5 * 1.0, without a bonus: turn 1 has nothing to improve on; G_2 = (1 + 1) * 1.0
    assert turn_returns((0.2, 1.0), "turn", 0.5, bonus=1.0) == approx([0.7, 2.0])
    # G_1 = 0.2 + 0.5 * 0.6 + 0.25 * 1.0; G_2 = 3 * 0.6 + 0.5 * 1.0; G_3 = 3 * 1.0
    assert turn_returns((0.2, 0.6, 1.0), "turn", 0.5, bonus=2.0) == approx([0.75, 2.3, 3.0])


def test_the_bonus_is_a_weight_on_the_turns_own_reward():
    assert to_go_weights(3, 1, gamma=0.5, bonus=2.0) == [1.0, 0.5, 0.25]
    assert to_go_weights(3, 2, gamma=0.5, bonus=2.0) == [3.0, 0.5]
    # Paid for the change alone is paid for the own reward: w_2 = 0 and bonus 1 give the weight 1.
    assert to_go_weights(2, 2, gamma=0.0, bonus=1.0, weights_T=(1, 0)) == to_go_weights(2, 2, gamma=0.0)


def test_last_trains_the_last_turn_and_the_others_train_all():
    assert [trained_turns(credit, 3) for credit in CREDITS] == [[1, 2, 3], [1, 2, 3], [3]]


@pytest.mark.parametrize("credit", ["trajectory", "last"])
@pytest.mark.parametrize("option", [{"bonus": 1.0}, {"weights_T": (0, 1)}])
def test_a_bonus_and_turn_weights_with_another_credit_are_refused(credit, option):
    with pytest.raises(ValueError, match="need credit 'turn'"):
        turn_returns((0.0, 1.0), credit, 0.5, **option)


@quick
@given(some_turns, gammas, bonuses, st.sampled_from(CREDITS), reward, st.integers(0, 3))
def test_what_happened_before_a_turn_does_not_change_its_return(
    rewards_T, gamma, bonus, credit, other, index
):
    index %= len(rewards_T)
    changed = list(rewards_T)
    changed[index] = other
    bonus = bonus if credit == "turn" else 0.0
    before, after = (turn_returns(r, credit, gamma, bonus) for r in (rewards_T, changed))
    turns = trained_turns(credit, len(rewards_T))
    assert [a == b for a, b, t in zip(before, after, turns, strict=True) if t > index + 1] == [True] * sum(
        t > index + 1 for t in turns
    )


@quick
@given(some_turns, gammas, bonuses, reward, st.integers(0, 3))
def test_in_turn_mode_no_turn_loses_by_a_better_attempt(rewards_T, gamma, bonus, other, index):
    index %= len(rewards_T)
    raised = list(rewards_T)
    raised[index] = max(other, rewards_T[index])
    before, after = (turn_returns(r, "turn", gamma, bonus) for r in (rewards_T, raised))
    assert all(a >= b for b, a in zip(before, after, strict=True))


def test_score_pays_each_turn_for_itself_as_published():
    # Stage I, r = (1, 0.25): G_1 = -0.25 * 2, nothing but its penalty; G_2 = 0.25 - 0.01 * 4.
    penalties = kl_penalties([2.0, 4.0], [0.25, 0.01])
    found = turn_returns((1.0, 0.25), "turn", 0.0, weights_T=(0, 1), penalties_K=penalties)
    assert found == approx([-0.5, 0.21])
    # Stage II: turn 2 counts eleven-fold. A repair has G = (0, 11), a spoilt program (1, 0), a kept one (1, 11).
    found = [turn_returns(r, "turn", 0.0, bonus=10.0) for r in ((0.0, 1.0), (1.0, 0.0), (1.0, 1.0))]
    assert found == [approx([0.0, 11.0]), approx([1.0, 0.0]), approx([1.0, 11.0])]


def test_with_gamma_0_a_turn_does_not_need_the_later_rewards():
    assert turn_returns((0.5, None), "turn", 0.0) == [0.5, None]
    assert turn_returns((0.5, None), "turn", 0.1) == [None, None]


def test_a_turn_that_is_not_paid_for_may_be_unknown():
    assert turn_returns((None, 1.0), "turn", 1.0, weights_T=(0, 1)) == [1.0, 1.0]
    assert turn_returns((None, 1.0), "turn", 1.0, bonus=1.0, weights_T=(0, 1)) == [1.0, 2.0]


# -- KL --


def test_the_kl_penalty_of_a_trajectory_is_summed_from_the_turn_on():
    # G_1 = 0.9 - 0.1 * (2 + 4) = 0.3; G_2 = 1.0 - 0.1 * 4 = 0.6
    assert turn_returns((0.2, 1.0), "trajectory", 0.5, penalties_K=[0.2, 0.4]) == approx([0.3, 0.6])


def test_the_kl_penalty_of_a_turn_is_discounted_as_its_rewards_are():
    # G_1 = 0.2 + 0.5 * 1.0 - 0.1 * (2 + 0.5 * 4) = 0.3; G_2 = 1.0 - 0.1 * 4 = 0.6
    assert turn_returns((0.2, 1.0), "turn", 0.5, penalties_K=[0.2, 0.4]) == approx([0.3, 0.6])


def test_the_kl_penalty_of_last_is_the_last_turns_own():
    # 1.0 - 0.1 * 4 = 0.6
    assert turn_returns((0.2, 1.0), "last", 0.5, penalties_K=[0.4]) == approx([0.6])


# -- advantages --


def test_leave_one_out_by_hand():
    # 1 - (0 + 0.5) / 2, 0 - (1 + 0.5) / 2, 0.5 - (1 + 0) / 2
    assert leave_one_out((1.0, 0.0, 0.5)) == approx([0.75, -0.75, 0.0])


@quick
@given(st.lists(st.floats(-10, 10), min_size=2, max_size=8))
def test_leave_one_out_sums_to_zero_and_is_trls_formula(returns_G):
    found = leave_one_out(returns_G)
    assert sum(found) == pytest.approx(0, abs=1e-9)
    k, total = len(returns_G), sum(returns_G)
    for i, g in enumerate(returns_G):
        siblings = returns_G[:i] + returns_G[i + 1 :]
        assert found[i] == pytest.approx(g - sum(siblings) / len(siblings), abs=1e-9)  # eq. 7
        assert found[i] == pytest.approx(g - (total - g) / (k - 1), abs=1e-9)  # trl.RLOOTrainer
        assert found[i] == pytest.approx(k / (k - 1) * (g - total / k), abs=1e-9)


def test_siblings_are_compared_at_the_same_turn_and_only_within_their_group():
    # group 1, turn 1: 1 against 0; turn 2: 0.2 against 0.6. Group 2: nothing differs.
    found = advantages([[[1.0, 0.2], [0.0, 0.6]], [[5.0, 7.0], [5.0, 7.0]]])
    assert found == [[approx([1.0, -0.4]), approx([-1.0, 0.4])], [[0.0, 0.0], [0.0, 0.0]]]


def test_gamma_changes_the_advantages_of_credit_trajectory():
    # G_1 = r_2 - (1 - gamma) r_1: (0, 1) -> 1 and (1, 1) -> gamma; A_1 = +-(1 - gamma). G_2 = 1 for both.
    for gamma in (0.0, 0.5, 0.9, 1.0):
        expected = [[1 - gamma, 0.0], [gamma - 1, 0.0]]
        assert group_advantages([(0.0, 1.0), (1.0, 1.0)], "trajectory", gamma) == list(map(approx, expected))


def test_gamma_changes_the_advantages_of_credit_turn():
    # (0, 1) -> G = (gamma, 1); (1, 0) -> G = (1, 0); A_1 = gamma - 1 and A_2 = 1 for the first of them
    for gamma in (0.0, 0.5, 0.9, 1.0):
        expected = [[gamma - 1, 1.0], [1 - gamma, -1.0]]
        assert group_advantages([(0.0, 1.0), (1.0, 0.0)], "turn", gamma) == list(map(approx, expected))


@pytest.mark.parametrize("shared", [(0.0,), (0.4,), (1.0,), (0.4, 0.8)])
def test_gamma_cannot_change_the_advantages_of_credit_last_where_earlier_turns_are_shared(shared):
    # Whatever gamma makes of the shared terms stands in every sibling: A = +-(1.0 - 0.25)
    for gamma in (0.0, 0.5, 0.9, 1.0):
        found = group_advantages([(*shared, 1.0), (*shared, 0.25)], "last", gamma)
        assert found == [approx([0.75]), approx([-0.75])]


@quick
@given(st.lists(reward, min_size=2, max_size=5), gammas, st.floats(-5, 5), st.floats(0, 1))
def test_one_turn_is_plain_rloo_for_every_credit(rewards_G, gamma, kl, beta):
    kl_G = [kl * (i + 1) for i in range(len(rewards_G))]
    plain = leave_one_out([r - beta * kl for r, kl in zip(rewards_G, kl_G, strict=True)])
    for credit in CREDITS:
        returns = [
            turn_returns([r], credit, gamma, penalties_K=kl_penalties([kl], [beta]))
            for r, kl in zip(rewards_G, kl_G, strict=True)
        ]
        assert advantages([returns]) == [[approx([a]) for a in plain]]


# -- None --


def test_a_trajectory_without_a_reward_has_no_advantage_and_no_part_in_the_baseline():
    # (1, None, 0) -> (1 - 0, nothing, 0 - 1). Were None a 0: (1 - 0, 0 - 0.5, 0 - 0.5).
    assert leave_one_out((1.0, None, 0.0)) == [1.0, 0.0, -1.0]
    # (1, None, 1): nothing differs. Were None a 0: (0.5, -1, 0.5).
    assert leave_one_out((1.0, None, 1.0)) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("returns_G", [(1.0, None), (None, None), (1.0,), (None, None, 0.3)])
def test_without_two_known_returns_there_is_nothing_to_learn(returns_G):
    assert leave_one_out(returns_G) == [0.0] * len(returns_G)


@quick
@given(st.lists(st.one_of(st.none(), st.floats(-10, 10)), min_size=1, max_size=8))
def test_the_others_advantages_are_as_if_the_failed_one_had_never_been(returns_G):
    found = leave_one_out(returns_G)
    known = [g for g in returns_G if g is not None]
    assert [a for a, g in zip(found, returns_G, strict=True) if g is not None] == leave_one_out(known)
    assert all(a == 0.0 for a, g in zip(found, returns_G, strict=True) if g is None)


def test_a_missing_reward_leaves_out_every_return_that_depends_on_it():
    assert turn_returns((None, 1.0), "trajectory", 0.5) == [None, 1.0]
    assert turn_returns((None, 1.0), "trajectory", 1.0) == [1.0, 1.0]  # R = r_2
    assert turn_returns((1.0, None), "last", 0.5) == [None]
    assert turn_returns((1.0, None), "turn", 0.5) == [None, None]
    assert turn_returns((None, 1.0), "turn", 0.5) == [None, 1.0]  # G_2 = r_2
    assert turn_returns((None, 1.0), "turn", 0.5, bonus=1.0) == [None, 2.0]
    assert turn_returns((0.4, None, 1.0), "turn", 0.5) == [None, None, 1.0]
    assert turn_returns((None, 0.4, 1.0), "turn", 0.5, bonus=1.0) == [None, approx(1.3), 2.0]


@pytest.mark.parametrize("credit", CREDITS)
def test_executor_failures_are_left_out_from_the_verdicts_to_the_advantages(credit):
    right, wrong = executed(True), executed(False)
    turns_G_T = [(right, right), (right, INFRA_FAILURE), (wrong, right), (right, wrong)]
    rewards_G_T = [[turn_reward(result) for result in turns] for turns in turns_G_T]
    assert rewards_G_T[1] == [1.0, None]
    found = group_advantages(rewards_G_T, credit, 0.5)
    others = group_advantages(rewards_G_T[:1] + rewards_G_T[2:], credit, 0.5)
    assert found[1] == [0.0] * len(found[1])
    assert found[:1] + found[2:] == others
    assert any(any(row) for row in others)  # there is something to learn, so being left out is a difference
    as_zero = group_advantages([[r or 0.0 for r in rewards] for rewards in rewards_G_T], credit, 0.5)
    assert as_zero != found


@quick
@given(
    st.lists(st.lists(st.one_of(st.none(), reward), min_size=3, max_size=3), min_size=1, max_size=5),
    gammas,
    st.sampled_from(CREDITS),
)
def test_advantages_are_finite_and_sum_to_zero_at_every_turn(rewards_G_T, gamma, credit):
    found = group_advantages(rewards_G_T, credit, gamma)
    for advantages_G in zip(*found, strict=True):
        assert all(map(isfinite, advantages_G)) and isclose(sum(advantages_G), 0, abs_tol=1e-9)


def test_returns_come_group_by_group_with_each_turns_own_beta():
    objective = Objective(
        num_turns=2,
        num_generations=2,
        credit="turn",
        gamma=0.5,
        improvement_bonus=1.0,
        turn_weights=None,
        betas_T=[0.25, 0.01],
    )
    scores = [
        Score([0.0, 1.0], [2.0, 10.0]),
        Score([1.0, 1.0], [0.0, 0.0]),
        Score([0.5, None], [0.0, 0.0]),
        Score([0.2, 1.0], [0.0, 0.0]),
    ]
    # First trajectory: penalties 0.25 * 2 = 0.5 and 0.01 * 10 = 0.1.
    # G_1 = 0 + 0.5 * 1 - (0.5 + 0.5 * 0.1) = -0.05; G_2 = 2 * 1 - 0.1 = 1.9.
    [[first, second], [third, fourth]] = grouped_returns(scores, objective)
    assert first == pytest.approx([-0.05, 1.9])
    assert second == pytest.approx([1.5, 2.0])  # 1 + 0.5 * 1; 2 * 1
    assert third == [None, None]  # both turns' returns need r_2
    assert fourth == pytest.approx([0.7, 2.0])  # 0.2 + 0.5; 2 * 1


def test_credit_last_has_one_return_per_trajectory_with_the_last_turns_beta():
    objective = Objective(2, 2, "last", 0.5, 0.0, None, betas_T=[9.0, 0.1])
    # r_2 - 0.1 * 3 = 0.7, and 1
    [[one, other]] = grouped_returns([Score([0.2, 1.0], [3.0]), Score([1.0, 1.0], [0.0])], objective)
    assert one == pytest.approx([0.7]) and other == pytest.approx([1.0])


# -- early stop --

EARLY_STOP = Objective(2, 3, "turn", 0.5, 0.0, None, betas_T=[0.1, 0.1])


def test_a_trajectory_that_stopped_trains_no_later_turn_but_is_in_the_baseline_of_its_siblings():
    """Trajectory 1 stopped at turn 1 with r = 1, so r_2 = 1 is carried; 2 and 3 went on.

    KL penalties: 0.1 * KL, none at the carried turn.
    G of 1: (1 + 0.5 * 1 - 0.1 * 2, 1)               = (1.3, 1)
    G of 2: (0 + 0.5 * 1 - 0.1 * (1 + 0.5 * 4), 1 - 0.4) = (0.2, 0.6)
    G of 3: (0.5 + 0, 0)                             = (0.5, 0)
    """
    scores = [Score([1.0, 1.0], [2.0, None]), Score([0.0, 1.0], [1.0, 4.0]), Score([0.5, 0.0], [0.0, 0.0])]
    returns = grouped_returns(scores, EARLY_STOP)
    assert returns == [[approx([1.3, 1.0]), approx([0.2, 0.6]), approx([0.5, 0.0])]]
    # At turn 2: nothing for 1; 0.6 - (1 + 0) / 2 for 2; 0 - (1 + 0.6) / 2 for 3.
    assert trained_advantages(returns, scores) == [
        approx([1.3 - 0.35, 0.0]),
        approx([0.2 - 0.9, 0.1]),
        approx([0.5 - 0.75, -0.8]),
    ]


def test_a_single_trajectory_that_goes_on_is_compared_with_its_stopped_siblings():
    scores = [Score([1.0, 1.0], [0.0, None]), Score([0.5, 0.5], [0.0, None]), Score([0.0, 1.0], [0.0, 0.0])]
    [_, _, (_, advantage)] = trained_advantages(grouped_returns(scores, EARLY_STOP), scores)
    assert advantage == approx(1.0 - (1.0 + 0.5) / 2)


def test_a_turn_that_nobody_takes_trains_nothing_and_counts_as_a_group_without_spread():
    scores = [Score([r, r], [0.0, None]) for r in (1.0, 0.5, 0.0)]
    returns = grouped_returns(scores, EARLY_STOP)
    assert returns == [[[1.5, None], [0.75, None], [0.0, None]]]
    assert zero_spread(returns) == [0.0, 1.0]
    assert trained_advantages(returns, scores) == [
        approx([1.125, 0.0]),
        approx([0.0, 0.0]),
        approx([-1.125, 0.0]),
    ]


def test_an_executor_failure_stays_out_of_the_baseline_of_siblings_that_stopped_and_went_on():
    scores = [Score([1.0, 1.0], [0.0, None]), Score([0.0, None], [0.0, 0.0]), Score([0.0, 0.5], [0.0, 0.0])]
    found = trained_advantages(grouped_returns(scores, EARLY_STOP), scores)
    # G_1 = 1.5, unknown, 0.25; G_2 = 1 (carried), unknown, 0.5
    assert found == [approx([1.25, 0.0]), [0.0, 0.0], approx([-1.25, -0.5])]


def test_with_credit_trajectory_a_carried_turn_adds_no_improvement():
    objective = Objective(3, 2, "trajectory", 0.5, 0.0, None, betas_T=[0.0] * 3)
    scores = [Score([0.2, 1.0, 1.0], [0.0, 0.0, None]), Score([0.2, 0.2, 1.0], [0.0, 0.0, 0.0])]
    # R = -0.25 r_1 - 0.5 r_2 + r_3; the first one carries r_3 = 1: (0.45, 0.5, 1); the other: (0.85, 0.9, 1)
    returns = grouped_returns(scores, objective)
    assert returns == [[approx([0.45, 0.5, 1.0]), approx([0.85, 0.9, 1.0])]]
    assert trained_advantages(returns, scores) == [approx([-0.4, -0.4, 0.0]), approx([0.4, 0.4, 0.0])]


def test_hidden_tests_alone_can_pay():
    result = executed(True, True, False, True)  # two visible tests, then two hidden ones
    rewards = [turn_reward(result, kind, num_unpaid=2) for kind in ("fraction", "binary", "count")]
    assert rewards == [0.5, 0.0, 1.0]
    assert turn_reward(executed(False, True), "binary", num_unpaid=1) == 1.0


def test_a_mean_over_rows_of_row_advantages_is_a_mean_over_trajectories_of_sums_over_turns():
    advantages_B_K = [[0.5, -1.0], [0.25, 0.0]]
    rows = row_advantages(advantages_B_K)
    assert rows == [1.0, -2.0, 0.5, 0.0]
    # ((0.5 - 1) + (0.25 + 0)) / 2 trajectories = -0.125
    assert sum(rows) / len(rows) == sum(map(sum, advantages_B_K)) / len(advantages_B_K) == -0.125


def test_a_trajectory_is_compared_with_the_siblings_in_its_own_state_if_there_are_any():
    # State a: 1 and 0 are compared with each other. State b has one trajectory: its baseline is the mean of
    # all others, (1 + 0 + 1) / 3, of which the last one stopped earlier and has no row.
    found = leave_one_out((1.0, 0.0, 1.0, 1.0), ("a", "a", "b", None))
    assert found == approx([1.0, -1.0, 1 / 3, 1 / 3])
    assert leave_one_out((1.0, 0.0, None), ("a", "b", "a")) == approx([1.0, -1.0, 0.0])
    same = leave_one_out((1.0, 0.25, 0.5), ("a", "a", "a"))
    assert same == leave_one_out((1.0, 0.25, 0.5))
