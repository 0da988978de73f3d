"""Text of the estimates that the dry runs of both stages print: model, memory, warnings."""

from collections.abc import Sequence

import torch

from cocos.planning.memory import Memory, fits, gib, peak, phases
from cocos.planning.shapes import GIB, Layout, ModelShape, Workload

SHARDING = ("nothing sharded", "ZeRO stage 1", "ZeRO stage 2", "ZeRO stage 3 or FSDP")


def model_text(name: str | None, shape: ModelShape, layout: Layout) -> str:
    """Return the model's size, and the bytes per trained parameter."""
    adapter = f", {shape.adapter_parameters:,} of adapters are trained" if shape.adapter_parameters else ""
    precision = layout.precision
    return (
        f"model: {name}, {shape.parameters:,} parameters{adapter}, context {shape.context} tokens\n"
        f"states: {layout.num_gpus} process(es), {SHARDING[layout.zero_stage]}; bytes per trained parameter: "
        f"weights {precision.weights:g}, gradients {precision.gradients:g}, "
        f"optimizer {precision.master + precision.moments:g}"
    )


def memory_text(shape: ModelShape, layout: Layout, workload: Workload) -> str:
    """Return a table of the memory of every phase, and its peak compared with this machine's GPU, if any."""
    memory = phases(shape, layout, workload)
    needed = peak(memory)
    verdict = f"needs {gib(needed)} GiB per GPU"
    if torch.cuda.is_available():
        available = torch.cuda.get_device_properties(0).total_memory
        room = "fits" if fits(needed, available / GIB) else "does NOT fit"
        verdict += f", {room} in this GPU's {gib(available)} GiB"
    return "\n".join(
        [
            f"memory, estimated for rows of {workload.prompt + workload.answer} tokens, the longest possible",
            f"{'GiB per GPU':<12}" + "".join(f"{name:>12}" for name in (*Memory._fields, "total")),
            *(
                f"{name:<12}" + "".join(f"{size / GIB:>12.2f}" for size in (*parts, parts.total))
                for name, parts in memory.items()
            ),
            verdict,
        ]
    )


def warnings_text(warnings: Sequence[str]) -> str:
    """Return one line per warning."""
    return "\n".join(f"warning: {warning}" for warning in warnings) or "no warnings"
