"""Check that YAML, TOML, JSON and Markdown files parse, close their code fences and link to existing files.

    python -m tests.support.text_files README.md configs/cocos.yaml ...

Prints one line per fault and exits with status 1 if there are any. A Git hook passes the files of a commit.
"""

import argparse
import json
import re
import tomllib
from pathlib import Path

import yaml

LINK = re.compile(r"\]\(([^)#:\s]+)[^):]*\)")  # a target with a colon is a URL


def faults(path: Path) -> list[str]:
    """Return the faults of a file. A file of another type has none."""
    text = path.read_text(encoding="utf-8")
    try:
        match path.suffix:
            case ".yaml" | ".yml" | ".cff":
                yaml.compose(text)  # without the objects of tags, which programs define
            case ".toml":
                tomllib.loads(text)
            case ".json":
                json.loads(text)
            case ".md":
                return markdown_faults(text, path.parent)
    except (yaml.YAMLError, ValueError) as error:
        return [" ".join(str(error).split())]
    return []


def markdown_faults(text: str, folder: Path) -> list[str]:
    """Return the faults of a Markdown page; its links are relative to `folder`."""
    found = []
    prose, is_code = [], False
    for number, line in enumerate(text.splitlines(), start=1):
        if line != line.rstrip():
            found.append(f"line {number} ends with spaces")
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            prose.append(line)
    if is_code:
        found.append("the last code fence (```) is not closed")
    targets = LINK.findall("\n".join(prose))
    return found + [f"link to {target}: no such file" for target in targets if not (folder / target).exists()]


def main() -> int:
    """Check the files of the command line; return the exit status."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("files", nargs="*", type=Path, help="files to check")
    lines = [f"{path}: {fault}" for path in parser.parse_args().files for fault in faults(path)]
    print(*lines, sep="\n", end="\n" if lines else "")
    return int(bool(lines))


if __name__ == "__main__":
    raise SystemExit(main())
