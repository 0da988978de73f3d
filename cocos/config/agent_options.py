"""Options of repair agents, and the temperatures of their attempts."""

from dataclasses import dataclass

from cocos.carry import named_carry
from cocos.config.option import option, require_at_least
from cocos.config.turn_options import TurnOptions
from cocos.literals import Agent

# Attempt i of reflect is sampled at 0.25 + 0.2 i, at most 0.9: what failed is not written again.
AGENT_TEMPERATURES: dict[Agent, list[float]] = {
    "none": [0.0],
    "reflect": [0.0, 0.45, 0.65, 0.85, 0.9],
    "react": [0.0],
    "tools": [0.7, 0.5, 0.3],
}


@dataclass
class AgentOptions(TurnOptions):
    """Options of what happens between the turns, and of repair agents, which decide it themselves."""

    agent: Agent = option("prompt", "none", "Repair agent that plays instead (docs/agents.md); an oracle.")
    max_repeats: int = option("rule", 3, "Repeated programs, failures or calls that end an agent.")

    def __post_init__(self) -> None:
        TurnOptions.__post_init__(self)
        require_at_least(self, 1, "max_repeats")
        if self.agent == "none":
            return
        if self.feedback != "none" or self.early_stop or self.on_repeat != "keep":
            raise ValueError(
                f"--agent {self.agent} has its own feedback, end and treatment of repeated programs; leave "
                "out --feedback, --early_stop and --on_repeat"
            )
        if named_carry(self.carry).starts_anew:
            raise ValueError(f"--agent {self.agent} plays on in its transcript; leave out --carry")
        if self.visible_tests == 0:
            raise ValueError(f"--agent {self.agent} needs visible tests; give --visible_tests 1 or more")

    @property
    def tells_errors(self) -> bool:
        """Return True if prompts quote failing tests, as those of every agent do."""
        return super().tells_errors or self.agent != "none"
