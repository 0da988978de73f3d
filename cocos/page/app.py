"""The script that Streamlit runs whenever a visitor opens the page or uses a field."""

import hmac
import sys

import streamlit as st

from cocos.page import runs_view, try_view
from cocos.page.shared import shared

VIEWS = {"Try": try_view.show, "Runs": runs_view.show}


def main() -> None:
    """Admit the visitor and show the chosen view."""
    page = shared(sys.argv[1])
    st.set_page_config("CoCoS-Lab", layout="wide")
    st.html("<style>.stMainBlockContainer { padding-top: 3.5rem; }</style>")  # the form fits on a screen
    st.subheader("CoCoS-Lab", anchor=False)
    if page.token and not st.session_state.get("is_admitted"):
        _admit(page.token)
    try_view.welcome()  # whichever view it is, somebody is there
    view = st.segmented_control(
        "View", [*VIEWS], default="Try", required=True, key="view", bind="query-params"
    )
    VIEWS[view](page)


def _admit(token: str) -> None:
    """Ask for the token that the terminal shows, once per session, and go on with it only."""
    typed = st.text_input("Token, from the terminal of the page", type="password")
    if hmac.compare_digest(typed.encode(), token.encode()):
        st.session_state["is_admitted"] = True
        st.rerun()
    if typed:
        st.error("This is not the token.")
    st.stop()


main()
