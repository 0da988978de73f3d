"""Print the completion of the commands and their options for a shell.

cocos completion bash > ~/.local/share/bash-completion/completions/cocos
cocos completion zsh > "${fpath[1]}/_cocos"
"""

import argparse
from collections.abc import Callable


def main() -> None:
    """Print the script for the shell that the command line names."""
    from cocos.commands import COMMANDS

    shell = completion_parser().parse_args().shell
    import shtab  # after the help, which needs nothing

    made: list[argparse.ArgumentParser] = []
    root = argparse.ArgumentParser(prog="cocos")
    root.add_argument("--version", action="store_true", help="print the version")
    # argparse makes the parser of a subcommand itself; ours are made by their modules.
    commands = root.add_subparsers(parser_class=lambda **_: made[-1])  # type: ignore[call-overload]
    for name, make in _parsers().items():
        made.append(make())
        commands.add_parser(name, help=COMMANDS[name].summary)
    print(shtab.complete(root, shell=shell))


def completion_parser() -> argparse.ArgumentParser:
    """Return the parser of this command."""
    from cocos.config.command_line import PlainParser

    parser = PlainParser(description=__doc__)
    parser.add_argument("shell", choices=("bash", "zsh"), help="shell to complete in")
    return parser


def _parsers() -> dict[str, Callable[[], argparse.ArgumentParser]]:
    """Return functions that make the parser of each command, without importing torch."""
    from cocos.commands import boost, boost_data, evaluate, train
    from cocos.commands.demo import demo_parser
    from cocos.commands.export import export_parser
    from cocos.commands.prepare import convert_parser
    from cocos.commands.report import report_parser
    from cocos.config.boost_data_config import BoostDataConfig
    from cocos.config.cocos_options import CoCoSOptions
    from cocos.config.command_line import OptionParser, PlainParser
    from cocos.config.eval_config import EvalSuiteConfig
    from cocos.config.training_options import BoostOptions
    from cocos.page.page_options import PageOptions

    return {
        "demo": demo_parser,
        "prepare": convert_parser,
        "boost-data": lambda: OptionParser(BoostDataConfig, boost_data.__doc__),
        "boost": lambda: OptionParser(BoostOptions, boost.__doc__),
        "train": lambda: OptionParser(CoCoSOptions, train.__doc__),
        "eval": lambda: OptionParser(EvalSuiteConfig, evaluate.__doc__),
        "report": report_parser,
        "page": lambda: OptionParser(PageOptions),
        "export": export_parser,
        "doctor": lambda: PlainParser(),
        "completion": completion_parser,
    }
