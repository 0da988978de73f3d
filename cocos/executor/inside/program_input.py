"""Standard input and files of a program, provided by its own process before it runs."""

import os


def provide(stdin: str, files: tuple[tuple[str, str], ...]) -> None:
    """Let `stdin` be what descriptor 0 reads, and write the files below the working folder.

    Args:
        stdin: Text of the standard input; "" leaves it empty.
        files: Relative path and text of each file.

    """
    if stdin:
        # A memory file, not a pipe: a pipe takes 64 KiB and blocks its writer, which is this process.
        fd = os.memfd_create("stdin")
        _write_all(fd, stdin)
        os.lseek(fd, 0, os.SEEK_SET)
        os.dup2(fd, 0)
        os.close(fd)
    for path, text in files:
        if folder := os.path.dirname(path):
            os.makedirs(folder, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        _write_all(fd, text)
        os.close(fd)


def _write_all(fd: int, text: str) -> None:
    data = memoryview(text.encode())
    while data:
        data = data[os.write(fd, data) :]
