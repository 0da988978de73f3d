"""The web page: try a model, read the reports on runs.

    cocos page
    cocos page --roots outputs models --port 8600
    cocos page --base_url http://localhost:11434/v1     try the models of an endpoint, too

Programs run at isolation level seccomp or better, or the page does not start. docs/page.md has the details.
"""


def main() -> None:
    """Start the executor, and serve the page until Ctrl-C."""
    import json
    import sys
    from contextlib import suppress
    from dataclasses import asdict
    from functools import partial
    from pathlib import Path

    from cocos.config.command_line import parse_options
    from cocos.page.page_options import PageOptions

    options = parse_options(PageOptions, __doc__)
    _check_port(options.address, options.port)
    try:
        from starlette.routing import Route
        from streamlit.starlette import App
    except ImportError:
        from cocos.files.extras import install_command

        raise ValueError(f"the page needs streamlit: {install_command('page')}") from None

    # app.py imports Try, with PyTorch, and the agents' package: a minute for which the first visitor would
    # see an empty window.
    print("loading PyTorch and the views of the page ...", flush=True)
    import cocos.page.try_view
    from cocos.page.form import MODEL_FILES
    from cocos.page.runs_view import serve_report
    from cocos.page.shared import linked_folders, shared

    with suppress(ImportError):  # an optional extra
        import cocos.agents.graphs

    sys.argv[1:] = [json.dumps(asdict(options))]  # for app.py
    page = shared(sys.argv[1])
    print(f"folders: {', '.join(options.roots)}", flush=True)
    for name, target in linked_folders(options.roots, *MODEL_FILES).items():
        print(f"not offered: {name} has links to other folders; give --roots {target}, too", flush=True)
    if page.token:
        print(f"warning: other machines can reach --address {options.address}, without encryption")
        print(f"token for visitors: {page.token}", flush=True)
    app = Path(cocos.page.__path__[0]) / "app.py"
    App(app, routes=[Route("/report", partial(serve_report, page))]).run(config=options.server_settings)


def _check_port(address: str, port: int) -> None:
    """Raise ValueError if another program listens on the port; Streamlit's message names no option."""
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            reason = error.strerror or error
            raise ValueError(f"--address {address} --port {port}: {reason}; choose another --port") from None
