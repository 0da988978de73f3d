"""The turn loop over an OpenAI-compatible endpoint: two attempts at each problem, and the accuracy of both.

    OPENAI_API_KEY=... python examples/endpoint.py http://127.0.0.1:11434/v1 qwen2.5-coder:1.5b problems.jsonl

Needs the extra `api`, and neither torch nor transformers.
"""

import os
import sys

from cocos.executor import Executor
from cocos.generation.endpoint import EndpointGenerator
from cocos.metrics import summary
from cocos.problems import load_problems
from cocos.prompts import named_protocol
from cocos.rollout import rollout
from cocos.trajectories import Rules, begin

base_url, model, path = sys.argv[1:]
generator = EndpointGenerator(model, base_url, [os.environ.get("OPENAI_API_KEY", "none")])
with Executor() as executor:
    trajectories = rollout(
        begin(load_problems(path)),
        generator,
        executor,
        named_protocol("repair"),
        num_turns=2,
        rules=Rules(feedback="error"),
    )
for name, estimate in summary(trajectories)["metrics"].items():
    print(name, estimate["value"])
