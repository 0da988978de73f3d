"""Pretrain the laboratory's base model: a tokenizer and a Llama of about 1 M parameters, on noisy programs.

As in code on the web, some operations are wrong more often than right (`Operation.wrong`). The model thus
knows the right form and prefers the wrong one, which leaves room for reinforcement learning. Later versions
of some programs follow them with a few errors fixed, so the model learns to read and edit earlier programs.
The instruction of a second turn never occurs. A document holds several problems, so that the model has seen
more positions than two turns need.

    python scripts/make_toy_base.py --seed 0 --output_dir data/toy/base     # six minutes on 2 CPU cores
"""

import argparse
import random
import re
from collections.abc import Iterator
from pathlib import Path

import torch
from make_toy_problems import (
    FILTERS,
    MAPS,
    NUMBERS,
    REDUCTIONS,
    Composition,
    Operation,
    draw_name,
    make_problem,
    split,
    write_code,
)
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from tqdm import tqdm
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from cocos.problems import Problem
from cocos.prompts import answer, protocol

EOS, PAD = "<eos>", "<pad>"
POSITIONS = 256
WRONG_SHARE = 0.75  # probability that an operation with a common error has it
FIX_SHARE = 0.3  # probability that the next version fixes an error
BREAK_SHARE = 0.03  # probability that the next version introduces an error
# A digit with its comma, a word with its space, a run of punctuation, or a line break with its indent.
PIECES = r"\d(?:, )?| ?[A-Za-z]+|_[A-Za-z]*|[^A-Za-z\d_\n]+|\n *"


def idioms() -> list[str]:
    """Return the phrases that get one token each: a short trajectory can be trained on two CPU cores.

    They are the fixed text of the prompts and the expressions of the programs, without the text of a problem.
    Short ones are left to BPE: a token "def " would take the space that belongs to the name after it.
    """
    words = protocol("cocos")
    first_turn = words.first_turn(Problem("", "{n}", ("{n}",)))
    style = write_code("{n}", "{n}", "{n}", "{n}", "{n}")
    forms = [form for op in FILTERS + MAPS + REDUCTIONS for form in (op.code, op.wrong)]
    phrases = [first_turn, words.later_turn(), answer(""), style, *forms]
    return list(dict.fromkeys(part for phrase in phrases for part in phrase.split("{n}") if len(part) > 4))


def train_tokenizer(texts: Iterator[str]) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE with single digits; no token spans the end of a prompt."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    phrases = idioms()
    between = re.compile("|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True)))
    trainer = trainers.BpeTrainer(
        special_tokens=[PAD, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((between.split(text) for text in texts), trainer)
    tokenizer.add_tokens([AddedToken(phrase, normalized=False) for phrase in phrases])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=EOS, pad_token=PAD, padding_side="left", model_max_length=1024
    )


class Corpus:
    """Unlimited pretraining documents over the compositions of data/toy/train.jsonl."""

    def __init__(self, seed: int, repeats: int = 20) -> None:
        self.rng = random.Random(seed)
        self.items: list[tuple[Composition, int, str, Problem]] = []
        for composition in split(seed=0)["train"] * repeats:
            n, name = self.rng.choice(NUMBERS), draw_name(self.rng)
            problem = make_problem("", composition, n, name, self.rng)
            if problem.test_list:
                self.items.append((composition, n, name, problem))

    def document(self) -> str:
        """Return four solved problems; two later versions of the program follow about half of them."""
        parts = []
        for composition, n, name, problem in self.rng.sample(self.items, 4):
            forms = [self._write(operation) for operation in composition]
            parts.append(protocol("cocos").first_turn(problem) + answer(write_code(name, n, *forms)))
            for version in (2, 3) if self.rng.random() < 0.5 else ():
                forms = [self._revise(op, form) for op, form in zip(composition, forms, strict=True)]
                parts.append(f"# Version {version}\n{answer(write_code(name, n, *forms))}")
        return "\n\n".join(parts) + EOS

    def _write(self, operation: Operation) -> str:
        return operation.wrong if operation.wrong and self.rng.random() < WRONG_SHARE else operation.code

    def _revise(self, operation: Operation, form: str) -> str:
        if form == operation.code:
            return operation.wrong if operation.wrong and self.rng.random() < BREAK_SHARE else form
        return operation.code if self.rng.random() < FIX_SHARE else form


def pretrain(
    tokenizer: PreTrainedTokenizerFast, corpus: Corpus, steps: int, batch_size: int, lr: float
) -> LlamaForCausalLM:
    """Train on all tokens with AdamW and a one-cycle schedule; each sequence is the start of a document."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=steps, pct_start=0.1)
    bar = tqdm(range(steps), desc="pretraining")
    for _ in bar:
        documents = [corpus.document() for _ in range(batch_size)]
        batch = tokenizer(documents, truncation=True, max_length=POSITIONS)
        batch = tokenizer.pad(batch, padding_side="right", return_tensors="pt")
        labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
        loss = model(**batch, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        bar.set_postfix(loss=f"{loss.item():.3f}")
    return model


def main() -> None:
    """Write the tokenizer's files, config.json, generation_config.json and model.safetensors."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--steps", type=int, default=1200, help="optimizer steps (default: 1200)")
    parser.add_argument("--batch_size", type=int, default=16, help="documents per step (default: 16)")
    parser.add_argument(
        "--learning_rate", type=float, default=3e-3, help="peak learning rate of AdamW (default: 3e-3)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of documents and weights (default: 0)")
    parser.add_argument(
        "--output_dir",
        type=Path,
        default=Path("data/toy/base"),
        help="output folder (default: data/toy/base)",
    )
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    corpus = Corpus(args.seed)
    tokenizer = train_tokenizer(corpus.document() for _ in range(2000))
    model = pretrain(tokenizer, corpus, args.steps, args.batch_size, args.learning_rate)
    tokenizer.save_pretrained(args.output_dir)
    model.save_pretrained(args.output_dir)
    print(f"{args.output_dir}: {model.num_parameters():,} parameters, {len(tokenizer)} tokens")


if __name__ == "__main__":
    main()
