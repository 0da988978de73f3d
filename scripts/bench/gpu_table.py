"""Tables of the figures of gpu.py, as a page in Markdown."""

from typing import Any

from cocos.files.markdown import markdown_table

MODELS = {"2 layers": "2 layers of 0.1B", "30 layers": "0.1B", "0.5B": "0.5B"}
HEAD = """# One GPU, measured

Written by `make gpu` (scripts/bench/gpu.py); the figures are in gpu.json. Models have random weights.

"""


def tables(figures: dict[str, Any]) -> str:
    """Return the page: the machine, and a table per kind of part that was measured."""
    machine = figures["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    rate = f"{machine['matrix_rate'] / 1e12:.3g} TFLOP/s in products of large matrices"
    parts = [f"{machine['device']}: {rate}; {versions}."]
    for name, table in (
        ("equality", equality),
        ("cached_decoding", cached_decoding),
        ("update", updates),
        ("decoding", decoding),
        ("training", training),
    ):
        found = [part for part in figures["parts"] if part["job"]["part"] == name]
        if found:
            parts += table(found, machine["matrix_rate"])
    return HEAD + "\n\n".join(parts) + "\n"


def equality(parts: list[dict[str, Any]], _: float) -> list[str]:
    """Return the differences of the layouts from plain rows."""
    cells = [
        [
            name,
            *(
                f"{values[key]:.2g}" if key in values else ""
                for key in ("logps_mean", "logps_max", "gradient")
            ),
        ]
        for part in parts
        for name, values in part["found"].items()
    ]
    head = ["against plain rows", "log p, mean difference", "largest", "gradient, relative difference"]
    return [
        "Rounding of the layouts (the first line is that of plain rows themselves):",
        markdown_table(head, cells),
    ]


def cached_decoding(parts: list[dict[str, Any]], _: float) -> list[str]:
    """Return the sentence about cached decoding."""
    found = parts[0]["found"]
    return [
        f"Greedy decoding with cached keys and values: a pass over the text prefers {found['same']:.2%} "
        f"of the ids too; the logits of the others are at most {found['largest_gap']:.2g} below the highest."
    ]


def updates(parts: list[dict[str, Any]], rate: float) -> list[str]:
    """Return seconds, tokens, share of the matrix rate and memory of updates."""
    cells = []
    for part in parts:
        shape = part["job"]["shape"]
        for layout in part["job"]["layouts"]:
            found = part["found"][layout]
            name = [MODELS[shape["model"]], f"{shape['num_problems']} x {shape['num_generations']}", layout]
            if "error" in found:
                cells.append([*name, found["error"], "", "", ""])
                continue
            peak = "" if found["peak_mib"] is None else f"{found['peak_mib']:.0f}"
            share = f"{found['operations_per_s'] / rate:.0%}"
            cells.append([*name, f"{found['seconds']:.3f}", f"{found['tokens_per_s']:.0f}", share, peak])
    head = ["model", "problems x k", "layout", "s", "tokens/s of the rows", "of the matrix rate", "peak MiB"]
    return ["Loss, gradient and AdamW's step:", markdown_table(head, cells)]


def decoding(parts: list[dict[str, Any]], _: float) -> list[str]:
    """Return tokens per second of sampling."""
    cells = [
        [
            MODELS[part["job"]["shape"]["model"]],
            part["job"]["engine"],
            str(part["job"]["shape"]["num_problems"] * part["job"]["shape"]["num_generations"]),
            f"{part['found']['seconds']:.2f}",
            f"{part['found']['tokens_per_s']:.0f}",
        ]
        for part in parts
    ]
    return ["Sampling:", markdown_table(["model", "engine", "rows", "s", "tokens/s"], cells)]


def training(parts: list[dict[str, Any]], _: float) -> list[str]:
    """Return the measured memory of train.py beside the estimate of its dry run."""
    cells = []
    for part in parts:
        found, job = part["found"], part["job"]
        layout = "ZeRO-2" if "options" in job else "one process"
        sizes = [f"{found[name]:.1f}" for name in ("estimated_gib", "peak_gib", "seconds")]
        cells.append([MODELS[job["shape"]["model"]], layout, *sizes])
    head = ["model", "layout", "GiB, estimated (with 1.5 for CUDA)", "GiB, allocated at most", "s per update"]
    return ["train.py, three updates of the laboratory's problems:", markdown_table(head, cells)]
