"""From the options of an evaluation to the generator that they name."""

from cocos.config import EvalConfig
from cocos.generation import Generator
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.scripted import ScriptedGenerator
from cocos.generation.tokens import load_tokenizer


def open_generator(args: EvalConfig) -> Generator:
    """The generator that the options ask for; says what it runs on."""
    if not args.model_name_or_path:
        return ScriptedGenerator(lambda prompt: "")  # every answer is given
    tokenizer = load_tokenizer(args.model_name_or_path)
    model = load_model(args.model_name_or_path, args.dtype, args.attn_implementation)
    print(f"model on {model.device} in {model.dtype}, attention {model.config._attn_implementation}")
    return HuggingFaceGenerator(
        model, tokenizer, args.max_completion_length, args.temperature[0], args.batch_size
    )
