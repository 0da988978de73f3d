"""Selection of trajectories by their first and last attempt and by words, and their labels in a list."""

from cocos.evaluation.sample_rows import SampleRow

FLOWS: dict[str, tuple[bool, bool] | None] = {  # whether the first and the last attempt are right
    "all": None,
    "wrong → right": (False, True),
    "right → wrong": (True, False),
    "right → right": (True, True),
    "wrong → wrong": (False, False),
}


def matches(row: SampleRow, flow: str, words: str) -> bool:
    """Return whether a row has this flow, and the words in its task, a program or an error."""
    turns, wanted = row["turns"], FLOWS[flow]
    if wanted is not None and (turns[0]["is_right"], turns[-1]["is_right"]) != wanted:
        return False
    texts = [row["task_id"], row["text"]]
    texts += [text for turn in turns for text in (turn["code"], turn["error_type"] or "")]
    return words.casefold() in "\n".join(texts).casefold()


def label(row: SampleRow) -> str:
    """Return a line such as `✗✓ test-3, sample 0`."""
    marks = "".join("✓" if turn["is_right"] else "✗" for turn in row["turns"])
    return f"{marks} {row['task_id']}, sample {row['sample']}"
