"""The web page: try a model, compare runs, watch training.

`__main__` starts the server; Streamlit runs the script `app` for every visitor, which shows one of the views.
`live_attempts` makes the attempts of the view Try, at problems that `typed_problem` makes of typed text.
Text of models, programs and files reaches the browser as text or code, never as Markdown or HTML.
"""
