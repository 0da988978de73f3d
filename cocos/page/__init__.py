"""The web page: try a model, and read the reports on runs.

`cocos/commands/page.py` starts the server; Streamlit runs the script `app` for every visitor, which shows one
of the two views. `try_view` shows `form`, whose problem `typed_problem` makes of typed text, and the attempts
of `live_attempts`. `runs_view` is a frame around `cocos.report`. Text of models, programs and files reaches
the browser as text or code, never as Markdown or HTML.
"""
