"""The options of the entry points: one dataclass each, plus TRL's ModelConfig where a model is trained.

Defaults are the paper's; the flags of the released CoCoS commands are aliases of the names used here. Does
not know how a command line or a YAML file becomes them (`cli.py`).
"""

from cocos.config.boost_config import BoostConfig
from cocos.config.cocos_config import CoCoSConfig, longest_wait_s
from cocos.config.eval_config import EvalConfig
from cocos.config.option_groups import ExecutorOptions, PromptOptions, open_executor, prompt_protocol
from cocos.config.training_options import model_init_kwargs

__all__ = [
    "BoostConfig",
    "CoCoSConfig",
    "EvalConfig",
    "ExecutorOptions",
    "PromptOptions",
    "longest_wait_s",
    "model_init_kwargs",
    "open_executor",
    "prompt_protocol",
]
