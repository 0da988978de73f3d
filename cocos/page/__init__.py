"""The web page: try a model, compare runs, watch training.

`__main__` starts the server, and Streamlit runs the script `app` for every visitor. `try_view`, `runs_view`
and `training_view` are its views, `turns_view` shows a trajectory, `shared` has what visitors share. Text of
models, programs and files reaches the browser as text or code, never as Markdown or HTML.
"""
