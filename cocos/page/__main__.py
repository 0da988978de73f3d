"""The web page: try a model, compare runs, watch training.

    python -m cocos.page
    python -m cocos.page --roots outputs models --port 8600

Programs run at isolation level seccomp or better, or the page does not start. docs/page.md has the details.
"""

from cocos.entry_point import run_command


def main() -> None:
    """Start the executor, and serve the page until Ctrl-C."""
    import json
    from dataclasses import asdict
    from pathlib import Path

    from cocos.config.command_line import parse_options
    from cocos.config.page_options import PageOptions

    options = parse_options(PageOptions, __doc__)
    try:
        from streamlit.web import bootstrap
    except ImportError:
        raise ValueError('the page needs streamlit: pip install "cocos-lab[page]"') from None

    # Imports PyTorch, so that the first visitor does not wait for it.
    from cocos.page.shared import shared

    argument = json.dumps(asdict(options))
    page = shared(argument)
    print(f"programs isolated by {page.executor.isolation}; folders: {', '.join(options.roots)}", flush=True)
    if page.token:
        print(f"token: {page.token}", flush=True)
    bootstrap.load_config_options(options.server_flags)
    bootstrap.run(str(Path(__file__).with_name("app.py")), False, [argument], options.server_flags)


if __name__ == "__main__":
    run_command(main)
