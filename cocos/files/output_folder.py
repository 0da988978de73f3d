"""Output folders: which of them a command may write to, and folders that are complete or absent.

A command writes to a folder that is new or empty, or that holds a run of its own. Everything else is refused,
so that no command replaces what somebody else has made. Imports the standard library only.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from pathlib import Path

from cocos.files.durable import DISK_FULL, LOCK_FILE, sync

# An option that only one command has, and what its record, run.json, then describes.
EVALUATION, COCOS_RUN, BOOST_RUN, DEMO = "an evaluation", "a CoCoS run", "a Boost run", "a demo"
KINDS = {"test_data": EVALUATION, "dev_data": COCOS_RUN, "eval_data": BOOST_RUN, "lab": DEMO}

# Entries that make no folder somebody's: no command writes them, or an interrupted one has left them.
IGNORED = (
    *(".DS_Store", "Thumbs.db", "desktop.ini", "lost+found", ".gitignore"),
    *("*.log", "*.out", "*.err", "log.txt", "wandb"),  # logs of shells (tee, nohup), schedulers and wandb
    *(LOCK_FILE, "run.json.new", ".*.partial"),
)
WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "adapter_model.bin")


def run_kind(options: Container[str]) -> str:
    """Return the kind of the run that has these options, a value of `KINDS`; "" for none."""
    return next((kind for option, kind in KINDS.items() if option in options), "")


def recorded_kind(folder: Path) -> str:
    """Return the kind of the run that a folder's run.json records; "" for none."""
    try:
        return run_kind(json.loads((folder / "run.json").read_bytes())["options"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def check_output_folder(
    folder: Path, is_own: Callable[[Path], bool] = lambda folder: False, option: str = "--output_dir"
) -> None:
    """Check that a command can and may write to a folder. Makes none.

    Entries that hold nothing (empty files and folders), those in `IGNORED`, and the file to which the shell
    sends this process's output do not count.

    Args:
        is_own: Returns whether a folder that is not empty holds a run of the command.
        option: Name of the folder's option; "" for an argument without a name.

    Raises:
        ValueError: The path is a file or cannot be written to, or the folder contains something else.

    """
    _check_writable(folder, option)
    found = next(_contents(folder), None)
    if found is None or is_own(folder):
        return
    kind = recorded_kind(folder)
    foreign = f"{kind} (run.json)" if kind else found.name
    raise ValueError(f"{option} {folder} contains {foreign}; choose a new or an empty folder".strip())


def check_training_folder(folder: Path, kind: str, is_resumed: bool) -> None:
    """Check that a training run can write to a folder without losing a trained model.

    A run that was stopped before its first checkpoint has nothing to lose, so it may be replaced.

    Args:
        kind: Kind of the run.
        is_resumed: Whether the run continues from a checkpoint, so that the folder may contain a model.

    Raises:
        ValueError: As `check_output_folder`, or the folder contains a trained model or checkpoints.

    """
    has_checkpoints = any(path.is_dir() for path in folder.glob("checkpoint-*"))
    found = recorded_kind(folder) or kind * has_checkpoints  # a damaged record is named when it is compared
    check_output_folder(folder, lambda folder: found == kind)
    if has_checkpoints and not is_resumed:
        raise ValueError(
            f"--output_dir {folder} contains checkpoints of a training run; continue it with "
            "--resume_from_checkpoint last, or choose another folder"
        )
    if not is_resumed and any(next(folder.glob(pattern), None) for pattern in WEIGHTS):
        raise ValueError(f"--output_dir {folder} contains a model; choose another folder")


def _contents(folder: Path) -> Iterator[Path]:
    """Yield the entries of a folder that count, by name; none if there is no such folder."""
    for path in sorted(folder.iterdir()) if folder.exists() else ():
        if any(path.match(pattern) for pattern in IGNORED) or _is_own_output(path):
            continue
        is_folder = path.is_dir() and not path.is_symlink()
        if next(_contents(path), None) if is_folder else path.is_symlink() or path.stat().st_size:
            yield path


def _is_own_output(path: Path) -> bool:
    """Return whether this process's output goes to a file, as after `> FOLDER/output.txt`."""
    for stream in (1, 2):
        try:
            if os.path.samestat(os.fstat(stream), path.stat()):
                return True
        except OSError:  # a closed stream, or a link to nowhere
            continue
    return False


def _check_writable(folder: Path, option: str) -> None:
    """Raise ValueError if nothing can be written to a folder, or no such folder can be made. Makes none."""
    name = f"{option} {folder}".strip()
    if not str(folder).isprintable():
        raise ValueError(f"{name!r} has characters that cannot be printed; choose another folder")
    try:
        if folder.is_symlink() and not folder.exists():
            raise ValueError(f"{name}: a link to nowhere; make its target, or choose another folder")
        existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if existing.is_dir():  # root may write where the permissions do not say so, and fail where they do
            tempfile.TemporaryDirectory(dir=existing).cleanup()
        elif existing == folder:
            raise ValueError(f"{name} is a file; give a folder")
        else:
            raise ValueError(f"{name}: {existing} is a file; choose another folder")
    except OSError as error:
        if error.errno in DISK_FULL:  # named with its remedy when the run writes
            return
        raise ValueError(f"{name}: cannot be written to ({error.strerror}); choose another folder") from None


@contextmanager
def new_folder(folder: Path, option: str = "--output_dir") -> Iterator[Path]:
    """Yield a temporary folder whose files are in `folder` after success; it is removed on any exception.

    Args:
        option: Name of the folder's option; "" for an argument without a name.

    Raises:
        ValueError: As `check_output_folder`.
        OSError: A file cannot be written.

    """
    check_output_folder(folder, option=option)
    # A rename works only within one file system, and an empty folder may be another one, mounted there.
    beside = folder if folder.exists() else folder.absolute().parent
    beside.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", suffix=".partial", dir=beside))
    try:
        yield partial
        for path in partial.iterdir():
            sync(path)  # before the rename: a power failure must not leave a folder of empty files
        # mkdtemp lets only the owner in; the finished folder gets the usual permissions.
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o777 & ~umask)
        check_output_folder(folder, option=option)  # another command may have written there meanwhile
        for path in sorted(partial.iterdir()) if folder.exists() else ():
            path.replace(folder / path.name)
        if not folder.exists():
            partial.replace(folder)
        sync(folder)
        sync(folder.absolute().parent)
    except OSError as error:
        if (
            error.errno and error.filename is None
        ):  # a failed write, for example on a full disk, does not know its file
            raise OSError(error.errno, f"{error.strerror}; {folder} was not written") from None
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
