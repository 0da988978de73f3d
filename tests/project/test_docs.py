"""The documents: the files, functions and options that they name exist, and the package's map names every module."""

import ast
import re
import subprocess

import pytest

import cocos
from cocos.commands.report import report_parser
from cocos.config.command_line import OptionParser
from cocos.config.eval_config import EvalConfig
from cocos.config.trl_configs import BoostConfig, CoCoSConfig
from tests.support import text_files
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text()
TRAINING = (ROOT / "docs/training.md").read_text()
METHOD = (ROOT / "docs/cocos.md").read_text()


def entries(text: str) -> list[str]:
    """Return the paths of a map, whose lines hold a path, two or more blanks, and a caption."""
    return re.findall(r"^ *([\w./-]+) {2,}\S", text, re.MULTILINE)


def first_level(package: str) -> set[str]:
    """Return the modules and packages directly in a package, as its folder lists them."""
    folder = ROOT / package
    modules = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    return modules | {path.parent.name + "/" for path in folder.glob("*/__init__.py")}


def test_the_map_of_the_package_names_every_module_and_package_and_no_others():
    names = {name.removesuffix("/").removesuffix(".py") for name in first_level("cocos")}
    mapped = {path.removesuffix("/").removesuffix(".py") for path in entries(cocos.__doc__)}
    assert {path.removeprefix("cocos/") for path in mapped} == names


def test_the_site_has_every_page():
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    named = re.findall(r"^ +- [^:]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(name for name in listed if (ROOT / name).is_file())


def test_every_function_that_the_method_page_names_is_defined_where_it_says():
    named = re.findall(r"`(\w+)` in `([\w/]+\.py)`", METHOD)
    assert len(named) > 6
    for name, path in named:
        definitions = ast.walk(ast.parse((ROOT / path).read_text()))
        assert name in {node.name for node in definitions if isinstance(node, ast.FunctionDef)}, (name, path)


@pytest.mark.parametrize(
    ("command", "config_type"),
    [
        (r"cocos boost|boost/boost_train\.py", BoostConfig),
        (r"cocos train|train\.py", CoCoSConfig),
        ("cocos eval", EvalConfig),
    ],
)
def test_every_option_of_a_command_in_the_readme_and_the_recipes_exists(command, config_type):
    blocks = "".join(re.findall(r"```\n(.*?)```", TRAINING + README, re.DOTALL)).replace("\\\n", " ")
    commands = [re.split(rf"(?:^|[ /])(?:{command}) ", line) for line in blocks.splitlines()]
    commands = [words for words in commands if len(words) == 2]
    assert len(commands) >= 2
    for before, words in commands:
        options = re.findall(r"--\w+", words)
        assert len(options) >= 2, before
        assert set(options) <= {"--config", *OptionParser(config_type)._option_string_actions}


def test_every_option_and_file_of_a_launching_command_exists():
    """In the section on launching: flags after the script are train.py's, and the files before and after it are there."""
    section = (ROOT / "docs/scaling.md").read_text().split("## Launching")[1].split("\n## ")[0]
    commands = re.findall(r"```\n(.*?)```", section, re.DOTALL)
    assert len(commands) >= 5
    flags = {
        flag
        for command in commands
        for flag in re.findall(r"--\w+", re.split(r"train\.py|cocos train", command)[1])
    }
    # --config is the parser's; the other two belong to a second launcher in a block
    others = {"--config", "--config_file", "--num_processes"}
    flags |= set(re.findall(r"`(--\w+)", section)) - {"--num_gpus"}
    assert flags - others <= set(OptionParser(CoCoSConfig)._option_string_actions)
    for path in re.findall(r"configs/[\w./-]+\w", section):
        assert (ROOT / path).exists(), path


def test_every_option_of_an_evaluation_or_a_report_that_their_page_names_exists():
    page = (ROOT / "docs/evaluation.md").read_text()
    commands = re.findall(r"(?:cocos eval|\d test\.py) ((?:[^\n]|\\\n)*)", page.replace("\\\n", " "))
    options = {option for command in commands for option in re.findall(r"--\w+", command)}
    options |= set(re.findall(r"`(--\w+)[ `]", page))
    assert len(commands) > 8 and len(options) > 20
    known = {**OptionParser(EvalConfig)._option_string_actions, **report_parser()._option_string_actions}
    assert options <= set(known)


def test_text_files_parse_and_their_links_lead_to_files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    kinds = (".md", ".yaml", ".yml", ".toml", ".json", ".cff")
    paths = [ROOT / name for name in listed.splitlines() if name.endswith(kinds)]
    found = {str(path): text_files.faults(path) for path in paths if path.exists()}
    assert len(found) > 30 and {path: faults for path, faults in found.items() if faults} == {}


def test_faults_of_text_files_are_found(tmp_path):
    (tmp_path / "a.md").write_text(
        "see [b](b.md), [web](https://x.org) and [a](a.md#top)  \n```\n[c](c.md)\n"
    )
    (tmp_path / "a.yaml").write_text("a: [1\n")
    (tmp_path / "a.toml").write_text("a =\n")
    (tmp_path / "a.json").write_text("{,}")
    assert text_files.faults(tmp_path / "a.md") == [
        "line 1 ends with spaces",
        "the last code fence (```) is not closed",
        "link to b.md: no such file",
    ]
    for name in ("a.yaml", "a.toml", "a.json"):
        assert len(text_files.faults(tmp_path / name)) == 1
