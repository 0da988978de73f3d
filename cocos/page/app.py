"""The script that Streamlit runs whenever a visitor opens the page or uses a field."""

import hmac
import secrets
import sys

import streamlit as st

from cocos.page import runs_view, training_view, try_view
from cocos.page.shared import shared


def main() -> None:
    """Admit the visitor and show the chosen view."""
    page = shared(sys.argv[1])
    st.set_page_config("CoCoS-Lab", layout="wide")
    st.subheader("CoCoS-Lab")
    if page.token and not _is_admitted(page.token):
        st.stop()
    view = st.segmented_control(
        "View",
        ["Try", "Runs", "Training"],
        default="Try",
        required=True,
        key="view",
        bind="query-params",
        label_visibility="collapsed",
    )
    if view == "Runs":
        runs_view.show(page.options)
    elif view == "Training":
        training_view.show(page.options)
    else:
        # The identifier in the address finds the attempts again after a reload.
        attempts = page.attempts_of(st.query_params.setdefault("visitor", secrets.token_urlsafe(12)))
        if attempts is None:
            st.error("All places are taken; come back in some minutes.")
        else:
            try_view.show(page, attempts)


def _is_admitted(token: str) -> bool:
    """Ask for the token that the terminal shows, once per session."""
    if not st.session_state.get("is_admitted"):
        typed = st.text_input("Token, from the terminal of the page", type="password")
        if not hmac.compare_digest(typed.encode(), token.encode()):
            if typed:
                st.error("This is not the token.")
            return False
        st.session_state["is_admitted"] = True
        st.rerun()
    return True


main()
