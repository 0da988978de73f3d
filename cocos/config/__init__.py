"""Options of the entry points: one dataclass per command, and the groups of options that commands share.

Defaults are the paper's. The flags of the released CoCoS commands are aliases of the names used here.
`command_line.py` reads the options from flags and a YAML file.
"""

from cocos.config.boost_config import BoostConfig
from cocos.config.boost_data_config import BoostDataConfig
from cocos.config.cocos_config import CoCoSConfig
from cocos.config.eval_config import EvalConfig
from cocos.config.shared_options import ExecutorOptions, PromptOptions, open_executor, prompt_protocol

__all__ = [
    "BoostConfig",
    "BoostDataConfig",
    "CoCoSConfig",
    "EvalConfig",
    "ExecutorOptions",
    "PromptOptions",
    "open_executor",
    "prompt_protocol",
]
