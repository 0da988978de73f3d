"""Every option says what depends on it, and the same option says the same in every command."""

from dataclasses import fields

import pytest

from cocos.config.boost_data_config import BoostDataConfig
from cocos.config.cocos_options import CoCoSOptions
from cocos.config.eval_config import EvalConfig
from cocos.config.option import ROLES, option, option_names
from cocos.config.training_options import BoostOptions
from cocos.config.trl_configs import BoostConfig, CoCoSConfig
from cocos.dataprep.options import PrepareOptions
from cocos.page.page_options import PageOptions

COMMANDS = (CoCoSOptions, BoostOptions, EvalConfig, BoostDataConfig, PageOptions, PrepareOptions)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_option_is_without_a_role(command):
    assert [field.name for field in fields(command) if field.metadata.get("role") not in ROLES] == []


@pytest.mark.parametrize(("full", "own"), [(CoCoSConfig, CoCoSOptions), (BoostConfig, BoostOptions)])
def test_an_option_keeps_its_role_beside_those_of_trl(full, own):
    roles = {field.name: field.metadata.get("role") for field in fields(full)}
    assert {field.name: roles[field.name] for field in fields(own)} == {
        field.name: field.metadata["role"] for field in fields(own)
    }


def test_an_option_has_one_role_in_all_commands():
    roles = {}
    for command in COMMANDS:
        for field in fields(command):
            roles.setdefault(field.name, set()).add(field.metadata["role"])
    assert {name: found for name, found in roles.items() if len(found) > 1} == {}


def test_an_option_with_an_unknown_role_is_refused():
    with pytest.raises(AssertionError, match="mood"):
        option("mood", 1, "")
    assert option_names(EvalConfig, "model") == ["model_name_or_path"]
