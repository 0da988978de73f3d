"""Tables of the figures of bench.py, as a page in Markdown."""

from typing import Any

from cocos.files.markdown import markdown_table

MODELS = {"2 layers": "2 layers of 0.1B", "30 layers": "0.1B", "data/toy/base": "laboratory"}
# A pass forward without gradient, one with it, and a backward pass of twice as many operations.
FORWARD_PASSES = 4
TITLE = "# Measured\n\nWritten by scripts/bench/bench.py from the JSON file beside this page.\n\n"

Part = dict[str, Any]


def tables(figures: dict[str, Any]) -> str:
    """Return the page: the machine, and a table per kind of part that was measured."""
    machine = figures["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    rate = f"{machine['matrix_rate'] / 1e12:.3g} TFLOP/s in products of large matrices"
    parts = [f"{machine['device']}: {rate}; {versions}."]
    for title, name, other, table in (
        ("The laboratory's first updates:", "laboratory", None, laboratory),
        (
            "Rounding of the layouts (the first line is that of plain rows themselves):",
            "equality",
            None,
            equality,
        ),
        ("Greedy decoding with cached keys and values:", "cached_decoding", None, cached_decoding),
        ("One layer's attention along trees, forward and backward:", "attention", None, attention),
        ("Old log-probabilities, loss and gradient:", "passes", None, layouts),
        ("The same for one turn, in TRL's own `RLOOTrainer`:", "passes", "trl", layouts),
        ("Whole updates of the laboratory (rollout, programs, loss, optimizer):", "updates", None, layouts),
        ("Sampling:", "decoding", None, decoding),
        ("Two turns, against `model.generate` on whole transcripts:", "turns", None, turns),
        ("train.py, three updates of the laboratory's problems:", "training", None, training),
    ):
        jobs = [(part["job"], part["found"]) for part in figures["parts"]]
        measured = [(job, found) for job, found in jobs if (job["part"], job.get("other")) == (name, other)]
        if measured:
            head, *rows = table(measured)
            parts += [title, markdown_table(head, rows)]
    return TITLE + "\n\n".join(parts) + "\n"


def _sizes(job: Part) -> list[str]:
    shape = job["shape"]
    model = MODELS.get(shape["model"], shape["model"])
    return [model, f"{shape['num_problems']} x {shape['num_generations']}"]


def laboratory(parts: list[tuple[Part, Part]]) -> list[list[str]]:
    """Return what the log says of each update."""
    rows = [["options", "update", "reward_t1", "reward_t2", "kl_t1", "engine/kl", "s"]]
    for job, found in parts:
        for number, log in enumerate(found["updates"], start=1):
            rewards = [f"{log[name]:.3f}" for name in ("reward_t1", "reward_t2")]
            gaps = [f"{log[name]:.2g}" if name in log else "" for name in ("kl_t1", "engine/kl")]
            rows.append([" ".join(job["options"]), str(number), *rewards, *gaps, f"{log['step_time']:.2f}"])
    return rows


def attention(parts: list[tuple[Part, Part]]) -> list[list[str]]:
    """Return the seconds by segment and with a dense mask."""
    rows = [["tokens", "by segment ms", "dense mask ms", "largest relative difference"]]
    for _, found in parts:
        times = [found["seconds"][name] for name in ("segments", "dense")]
        cells = [f"{1e3 * seconds:.3g}" if seconds else "out of memory" for seconds in times]
        difference = "" if found["difference"] is None else f"{found['difference']:.2g}"
        rows.append([str(found["tokens"]), *cells, difference])
    return rows


def equality(parts: list[tuple[Part, Part]]) -> list[list[str]]:
    """Return the differences of the layouts from plain rows."""
    keys = ("logps_mean", "logps_max", "gradient")
    rows = [["against plain rows", "log p, mean difference", "largest", "gradient, relative difference"]]
    for _, found in parts:
        for name, values in found.items():
            rows.append([name, *(f"{values[key]:.2g}" if key in values else "" for key in keys)])
    return rows


def cached_decoding(parts: list[tuple[Part, Part]]) -> list[list[str]]:
    """Return how far a pass over the whole text agrees with the sampled ids."""
    head = ["ids that a pass over the text prefers too", "largest gap of the other logits to the highest"]
    return [head, *([f"{found['same']:.2%}", f"{found['largest_gap']:.2g}"] for _, found in parts)]


def layouts(parts: list[tuple[Part, Part]]) -> list[list[str]]:
    """Return seconds and memory of trees and of another layout.

    The floor is the time that the operations of the trees take at the measured rate of matrix products.
    """
    other = "trl" if "other" in parts[0][0] else "plain"
    head = [
        "model",
        "problems x k",
        "T",
        "prompt",
        f"{other} s",
        "trees s",
        "ratio",
        f"{other} MiB",
        "trees MiB",
    ]
    has_floor = "operations" in parts[0][1]
    rows = [head + (["tokens, ratio", "floor s", "of the floor"] if has_floor else [])]
    for job, found in parts:
        seconds, peaks = found["seconds"], found["peaks_mib"]
        row = [*_sizes(job), str(job["shape"]["num_turns"]), str(job["shape"]["prompt"])]
        row += [f"{seconds[name]:.3g}" if seconds[name] else "out of memory" for name in (other, "shared")]
        row += [f"{seconds[other] / seconds['shared']:.2f}" if all(seconds.values()) else ""]
        row += [f"{peaks[name]:.0f}" if name in peaks else "" for name in (other, "shared")]
        if has_floor:
            floor = FORWARD_PASSES * found["operations"]["shared"] / found["matrix_rate"]
            share = f"{floor / seconds['shared']:.0%}" if seconds["shared"] else ""
            row += [f"{found['operations']['packing_ratio']:.1f}", f"{floor:.3g}", share]
        rows.append(row)
    return rows


def decoding(parts: list[tuple[Part, Part]]) -> list[list[str]]:
    """Return the tokens per second of sampling."""
    rows = [["model", "problems x k", "engine", "s", "tokens/s"]]
    for job, found in parts:
        rate = found["tokens"] / found["seconds"]
        rows.append([*_sizes(job), job["engine"], f"{found['seconds']:.2f}", f"{rate:.0f}"])
    return rows


def turns(parts: list[tuple[Part, Part]]) -> list[list[str]]:
    """Return the seconds of two turns."""
    rows = [["model", "problems", "tokens", "ours s", "plain s", "ratio", "trajectories that differ"]]
    for job, found in parts:
        ours, plain = found["seconds"]["ours"], found["seconds"]["plain"]
        numbers = [str(job["num_problems"]), str(found["tokens"]), f"{ours:.1f}", f"{plain:.1f}"]
        rows.append([job["model"], *numbers, f"{ours / plain:.2f}", str(found["differ"])])
    return rows


def training(parts: list[tuple[Part, Part]]) -> list[list[str]]:
    """Return the measured memory of train.py beside the estimate of its dry run."""
    head = ["layout", "GiB, estimated (with 1.5 for CUDA)", "GiB, allocated at most", "s per update"]
    rows = [["model", "problems x k", *head]]
    for job, found in parts:
        layout = "ZeRO-2" if "options" in job else "one process"
        sizes = [f"{found[name]:.1f}" for name in ("estimated_gib", "peak_gib", "seconds")]
        rows.append([*_sizes(job), layout, *sizes])
    return rows
