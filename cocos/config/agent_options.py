"""Options of repair agents, in evaluation only."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from cocos.config.option import option
from cocos.config.shared_options import require_positive

Agent = Literal["none", "reflect", "react", "tools"]
# Attempt i of reflect is sampled at 0.25 + 0.2 i, at most 0.9: what failed is not written again.
AGENT_TEMPERATURES: dict[Agent, list[float]] = {
    "none": [0.0],
    "reflect": [0.0, 0.45, 0.65, 0.85, 0.9],
    "react": [0.0],
    "tools": [0.7, 0.5, 0.3],
}


@dataclass
class AgentOptions:
    """Options of repair agents."""

    group: ClassVar[str] = "agents"

    agent: Agent = option(
        default="none",
        help="What plays a trajectory: the turn loop, or a repair agent that sees test results "
        "(docs/agents.md) in at most --num_turns programs.",
    )
    max_repeats: int = option(default=3, help="Repeated programs, failures or calls that end an agent.")
    system_prompt: str | None = option(
        default=None, help="File with the system message of a chat. By default that of the agent, if any."
    )

    def __post_init__(self) -> None:
        require_positive(self, "max_repeats")
        if self.system_prompt is not None and not Path(self.system_prompt).is_file():
            raise ValueError(f"--system_prompt {self.system_prompt}: no such file")

    @property
    def system_text(self) -> str | None:
        """Text of the file `--system_prompt`; None if it is not given."""
        if self.system_prompt is None:
            return None
        try:
            return Path(self.system_prompt).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"--system_prompt {self.system_prompt}: not readable ({error})") from None
