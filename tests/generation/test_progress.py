"""Progress within a batch."""

from tqdm import tqdm

from cocos.generation import Progress
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.progress import BatchBar, BatchProgress
from cocos.generation.scripted import ScriptedGenerator
from cocos.generation.tokenizer import load_tokenizer
from cocos.prompts import named_protocol
from cocos.rollout import rollout
from cocos.trajectories import Rules, begin
from tests.support.paths import ROOT


class Heard(Progress):
    def __init__(self):
        self.turns, self.added = [], []

    def start(self, turn, num_rows):
        self.turns.append((turn, num_rows))

    def add(self, num_tokens, num_ended):
        self.added.append((num_tokens, num_ended))


def test_the_turn_loop_names_each_turn_and_its_rows(executor, problem):
    generator = ScriptedGenerator(lambda prompt: "pass\n[DONE]")
    generator.progress = heard = Heard()
    rollout(begin([problem], 3), generator, executor, named_protocol("cocos"), 2, Rules(temperatures=(1.0,)))
    assert heard.turns == [("turn 1 of 2", 3), ("turn 2 of 2", 3)]
    assert sum(ended for _, ended in heard.added) == 6


def test_rows_are_counted_when_they_end_and_every_row_once():
    model = str(ROOT / "data/toy/base")
    tokenizer = load_tokenizer(model)
    generator = HuggingFaceGenerator(load_model(model), tokenizer, 6, batch_size=3)
    generator.progress = heard = Heard()
    prompts = [[5 + i, 40, 60 + i, 9] for i in range(7)]
    completions = generator.generate(prompts, 1.0, list(range(7)))
    assert sum(tokens for tokens, _ in heard.added) == sum(len(c.token_ids) for c in completions)
    assert sum(ended for _, ended in heard.added) == 7


def test_the_text_says_turn_rows_and_tokens_and_nothing_before_the_first_turn():
    drawn = []
    with BatchProgress(drawn.append, every_s=60) as progress:
        assert progress.text() == ""
        progress.start("turn 2 of 3", 12)
        progress.add(40, 0)
        progress.add(7, 7)
        assert progress.text() == "turn 2 of 3, 7 of 12, 47 tokens"
    assert drawn == [""]  # the thread has ended


def test_a_bar_moves_within_a_batch_but_never_beyond_it(monkeypatch):
    shown = []
    with BatchBar(batch_size=4, total=8, unit=" turns") as bar:
        monkeypatch.setattr(tqdm, "refresh", lambda bar, *_, **__: shown.append((bar.n, bar.postfix)))
        bar.start("turn 1 of 2", 2)
        bar.add(3, 1)
        bar._show(bar.text())
        bar.add(30, 10)  # resampled answers
        bar._show(bar.text())
        bar.finish_batch(4)
        bar.numbers = "acc@1=0.500"
        bar._show(bar.text())
    assert [n for n, _ in shown] == [1, 4, 4]
    assert shown[0][1] == "turn 1 of 2, 1 of 2, 3 tokens" and shown[2][1].startswith("acc@1=0.500, turn")
