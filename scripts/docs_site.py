"""Gather the sources of the documentation site in build/docs, for `mkdocs build`; `make docs` runs both.

The site has every Markdown page of the repository at its place, with every file that a page links to. So a
link works in the site as it does in the repository, and mkdocs --strict fails on one that leads nowhere.
"""

import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "build/docs"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)]*)?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Return the Markdown files that Git tracks, or would track."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()]


def linked_files(page: Path, text: str) -> set[Path]:
    """Return the files of the repository that a page links to; code blocks have no links."""
    targets = {found[3] for found in LINK.finditer(FENCE.sub("", text)) if ":" not in found[3]}
    return {path for target in targets if (path := (page.parent / target).resolve()).is_file()}


def without_folder_links(page: Path, text: str) -> str:
    """Return a page whose links to folders are plain text, because a site has no page of a folder."""

    def replace(found: re.Match[str]) -> str:
        is_folder = ":" not in found[3] and (page.parent / found[3]).is_dir()
        return found[2] if is_folder else found[0]

    return LINK.sub(replace, text)


def main() -> None:
    """Write build/docs anew."""
    shutil.rmtree(TARGET, ignore_errors=True)
    files: set[Path] = set()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        files |= linked_files(page, text)
        copy = TARGET / page.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(without_folder_links(page, text), encoding="utf-8")
    for file in files - set(pages()):
        copy = TARGET / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    print(f"{TARGET}: {len(pages())} pages, {len(files - set(pages()))} other files")


if __name__ == "__main__":
    main()
