"""report.html: everything about one evaluation or several in one file that needs no network.

Whatever a model, a data set or a folder's name contributes is escaped: as HTML here, as JSON for the list of
trajectories, which the script shows as text and never as markup. The page forbids every script but that one.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from cocos.report.comparison import Pair
from cocos.report.finished_runs import Run
from cocos.report.sections import Charts, sections


def save_page(runs: Sequence[Run], pairs: Sequence[Pair], charts: Charts, path: Path) -> None:
    """Write the page; rows go from samples.jsonl into it one at a time."""
    script = _source("programs.js") + _source("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "title": escape(" · ".join(run.name for run in runs)),
        "style": _source("page.css"),
        "sections": "\n".join(sections(runs, pairs, charts)),
        "script": script,
        "script_hash": f"'sha256-{digest}'",
    }
    # A lone surrogate, which UTF-8 cannot hold, becomes the escape that JSON has for it.
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        for piece in re.split(r"\{\{(\w+)\}\}", _source("template.html")):
            if piece == "samples":
                _write_samples(runs, file)
            else:
                file.write(parts.get(piece, piece))


def _source(name: str) -> str:
    return files("cocos.report").joinpath(name).read_text(encoding="utf-8")


def _write_samples(runs: Sequence[Run], file: IO[str]) -> None:
    names = [{"name": run.name, "num_turns": run.num_turns} for run in runs]
    file.write(f'{{"runs": {_json(names)}, "rows": [')
    separator = "\n"
    for number, run in enumerate(runs):
        for row in run.rows():
            turns = [_turn(turn) for turn in row["turns"]]
            file.write(separator + _json(_compact({**row, "turns": turns, "run": number})))
            separator = ",\n"
    file.write("\n]}")


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    """A turn without what the page can do without: the answer keeps only what stands around its program."""
    kept = {key: value for key, value in turn.items() if key not in ("completion", "isolation", "reward")}
    completion, code = turn["completion"], turn["code"]
    if code and code in completion:
        return kept | {"around": completion.split(code, 1)}
    return kept | {"completion": completion}


def _compact(value: Any) -> Any:
    """The same without what is empty, and times to a tenth of a millisecond."""
    if isinstance(value, dict):
        return {key: _compact(item) for key, item in value.items() if item is not None and item is not False}
    if isinstance(value, list):
        return [_compact(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def _json(value: object) -> str:
    """JSON that no HTML parser takes for the end of its script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
