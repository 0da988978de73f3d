"""What the documents promise is there: files, functions, options."""

import ast
import re

import pytest
from trl import ModelConfig

from cocos.config import BoostConfig, CoCoSConfig, EvalConfig
from cocos.config.command_line import _Parser
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text()
METHOD = (ROOT / "docs/cocos.md").read_text()


def test_every_file_of_the_tree_in_the_readme_exists():
    tree = README.split("## The tree")[1].split("```")[1]
    paths = [line.split()[0] for line in tree.strip().splitlines()]
    assert len(paths) > 15
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_module_of_the_package_is_in_the_tree():
    tree = README.split("## The tree")[1].split("```")[1]
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "cocos").glob("*.py")} - {
        "cocos/__init__.py"
    }
    assert {module for module in modules if f"{module} " not in tree} == set()


def test_every_function_that_the_method_page_names_is_defined_where_it_says():
    named = re.findall(r"`(\w+)` in `([\w/]+\.py)`", METHOD)
    assert len(named) > 6
    for name, path in named:
        definitions = ast.walk(ast.parse((ROOT / path).read_text()))
        assert name in {node.name for node in definitions if isinstance(node, ast.FunctionDef)}, (name, path)


@pytest.mark.parametrize(
    "script, configs",
    [
        ("boost/boost_train.py", (BoostConfig, ModelConfig)),
        ("train.py", (CoCoSConfig, ModelConfig)),
        ("test.py", (EvalConfig,)),
    ],
)
def test_every_option_of_a_command_in_the_readme_exists(script, configs):
    blocks = "".join(re.findall(r"```\n(.*?)```", README, re.DOTALL)).replace("\\\n", " ")
    commands = [line for line in blocks.splitlines() if re.search(rf"[ /]{re.escape(script)} ", line)]
    assert len(commands) >= 2
    for command in commands:
        options = re.findall(r"--\w+", command.split(script)[1])
        assert len(options) >= 2
        assert set(options) <= {"--config", *_Parser(configs)._option_string_actions}


def test_every_option_and_file_of_a_launching_command_exists():
    """In the section on launching: flags after the script are train.py's, and the files before and after it are there."""
    section = (ROOT / "docs/scaling.md").read_text().split("## Launching")[1].split("\n## ")[0]
    commands = re.findall(r"```\n(.*?)```", section, re.DOTALL)
    assert len(commands) >= 5
    flags = {flag for command in commands for flag in re.findall(r"--\w+", command.split("train.py", 1)[1])}
    others = {
        "--config",
        "--config_file",
        "--num_processes",
    }  # cli.py's, and those of a second launcher in a block
    flags |= set(re.findall(r"`(--\w+)", section)) - {"--num_gpus"}
    assert flags - others <= set(_Parser((CoCoSConfig, ModelConfig))._option_string_actions)
    for path in re.findall(r"configs/[\w./-]+\w", section):
        assert (ROOT / path).exists(), path


def test_every_option_of_an_evaluation_that_its_page_names_exists():
    page = (ROOT / "docs/evaluation.md").read_text()
    commands = re.findall(r"(?:python|\d) test\.py ((?:[^\n]|\\\n)*)", page.replace("\\\n", " "))
    options = {option for command in commands for option in re.findall(r"--\w+", command)}
    options |= set(re.findall(r"`(--\w+)[ `]", page))
    assert len(commands) > 8 and len(options) > 20
    assert options <= set(_Parser((EvalConfig,))._option_string_actions)


def test_links_between_documents_lead_somewhere():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "data/toy/README.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
