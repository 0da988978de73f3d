"""Pretrain the base model of a laboratory: a tokenizer and a Llama of about 1 M parameters.

First laboratory: noisy programs. As in code on the web, some operations are wrong more often than right
(`Operation.wrong`). The model thus knows the right form and prefers the wrong one, which leaves room for
reinforcement learning. Later versions of some programs follow them with a few errors fixed, so the model
learns to read and edit earlier programs. The instruction of a second turn never occurs.

Second laboratory (`--lab feedback`): transcripts of several turns, in which each program is a reading of its
question. The model thus knows every reading, how to keep or change a program on request, and the format of
feedback, but not what feedback asks for.

A document holds several problems, so that the model has seen more positions than two turns need.

    python scripts/make_toy_base.py --seed 0 --output_dir data/toy/base     # six minutes on 2 CPU cores
    python scripts/make_toy_base.py --lab feedback --steps 3000 --output_dir data/toy/feedback/base
"""

import re

import torch
from make_toy_problems import parse_arguments
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from toy_corpora import Corpus, ReadingsCorpus, VersionsCorpus
from tqdm import tqdm
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from cocos.commands.runner import run_command
from cocos.config.command_line import PlainParser

EOS, PAD = "<eos>", "<pad>"
CORPORA = {"first": VersionsCorpus, "feedback": ReadingsCorpus}
POSITIONS = 256
PEAK_LR = 3e-3  # of AdamW
NUM_TEXTS = 2000  # documents from which the tokenizer is trained
# A digit with its comma, a word with its space, a run of punctuation, or a line break with its indent.
PIECES = r"\d(?:, )?| ?[A-Za-z]+|_[A-Za-z]*|[^A-Za-z\d_\n]+|\n *"


def idioms(corpus: Corpus) -> list[str]:
    """Return the phrases that get one token each: a short trajectory can be trained on two CPU cores.

    Short ones are left to BPE: a token "def " would take the space that belongs to the name after it.
    """
    parts = (part for phrase in corpus.phrases() for part in phrase.split("{n}"))
    return list(dict.fromkeys(part for part in parts if len(part) > 4))


def train_tokenizer(corpus: Corpus) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE with single digits; no token spans the end of a prompt."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    phrases = idioms(corpus)
    between = re.compile("|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True)))
    trainer = trainers.BpeTrainer(
        special_tokens=[PAD, EOS], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    texts = (corpus.document() + EOS for _ in range(NUM_TEXTS))
    tokenizer.train_from_iterator((between.split(text) for text in texts), trainer)
    tokenizer.add_tokens([AddedToken(phrase, normalized=False) for phrase in phrases])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=EOS, pad_token=PAD, padding_side="left", model_max_length=1024
    )


def pretrain(
    tokenizer: PreTrainedTokenizerFast, corpus: Corpus, steps: int, batch_size: int
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
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_LR, betas=(0.9, 0.95), weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=PEAK_LR, total_steps=steps, pct_start=0.1
    )
    bar = tqdm(range(steps), desc="pretraining")
    for _ in bar:
        documents = [corpus.document() + EOS for _ in range(batch_size)]
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
    parser = PlainParser(description=__doc__)
    parser.add_argument("--lab", choices=sorted(CORPORA), default="first", help="laboratory (default: first)")
    parser.add_argument("--steps", type=int, default=1200, help="optimizer steps (default: 1200)")
    parser.add_argument("--batch_size", type=int, default=16, help="documents per step (default: 16)")
    args = parse_arguments(parser, "data/toy/base")
    torch.manual_seed(args.seed)
    corpus = CORPORA[args.lab](args.seed)
    tokenizer = train_tokenizer(corpus)
    model = pretrain(tokenizer, corpus, args.steps, args.batch_size)
    tokenizer.save_pretrained(args.output_dir)
    model.save_pretrained(args.output_dir)
    print(f"{args.output_dir}: {model.num_parameters():,} parameters, {len(tokenizer)} tokens")


if __name__ == "__main__":
    run_command(main)
