"""State of the page for all visitors: options, token, executor, and the attempts of each visitor."""

import json
import secrets
from functools import cache

from cocos.config.page_options import PageOptions
from cocos.config.shared_options import open_executor
from cocos.evaluation.live_attempts import Watchers


class Shared:
    """Options, executor and visitors of one server.

    Attributes:
        report_key: Part of the links to reports, which only visitors of the page know.
        token: What visitors have to type if other machines can reach the page; "": nothing.

    """

    def __init__(self, options: PageOptions) -> None:
        self.options, self.executor = options, open_executor(options)
        self.report_key = secrets.token_urlsafe(16)
        self.token = secrets.token_urlsafe(16) if options.allow_remote else ""
        self.visitors = Watchers(options.max_visitors)


@cache
def shared(options: str) -> Shared:
    """Return what the visitors of this process share; the first call starts the executor."""
    return Shared(PageOptions(**json.loads(options)))
