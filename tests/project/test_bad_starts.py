"""Starts that cannot work: each is one line that names the option and the remedy."""

import socket
import sys

import pytest

from cocos.generation.tokenizer import TokenTranscripts, load_tokenizer
from cocos.page.page_options import PageOptions
from cocos.training.start import check_loggers
from tests.support.commands import complaint
from tests.support.paths import TOY


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[", "unexpected"),
    ],
)
def test_a_chat_template_that_fails_is_named_with_the_roles_that_it_refuses(template, reason):
    tokenizer = load_tokenizer(str(TOY / "base"))
    tokenizer.chat_template = template
    with pytest.raises(ValueError, match="the chat template refuses the messages user") as caught:
        TokenTranscripts(tokenizer, ()).start("Double a number.", is_chat=True)
    assert reason in str(caught.value) and "choose another --protocol" in str(caught.value)


def test_a_logger_whose_package_is_missing_is_named_before_the_training_starts(monkeypatch):
    monkeypatch.setattr("cocos.training.start.find_spec", lambda name: None)
    for name, package in (("mlflow", "mlflow"), ("azure_ml", "azureml"), ("tensorboard", "tensorboard")):
        with pytest.raises(
            ValueError, match=f"--report_to {name}: the package is missing; pip install {package}$"
        ):
            check_loggers([name])
    check_loggers([])


def test_a_port_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"^--port is 99999; give at most 65535$"):
        PageOptions(port=99999, roots=[str(TOY)])


@pytest.mark.processes
def test_a_port_in_use_is_named_with_its_option():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = complaint(sys.executable, "-m", "cocos", "page", "--port", port, "--roots", TOY)
    assert f"--address 127.0.0.1 --port {port}: Address already in use; choose another --port" in line
