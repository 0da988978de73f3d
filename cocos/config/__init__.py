"""Options of the entry points: one dataclass per command, and the groups of options that commands share.

    cocos_options.py     train.py, without TRL's options
    training_options.py  what both training stages share, and boost/boost_train.py without TRL's options
    trl_configs.py       both, with the options of TRL and transformers
    eval_config.py       test.py
    boost_data_config.py scripts/make_boost_data.py
    prompt_options.py    prompts
    turn_options.py      rules between the turns
    agent_options.py     repair agents, and the temperatures of their attempts
    executor_options.py  isolation, limits and packages of the programs under test
    arguments.py         a field of a dataclass -> an argument of argparse
    schedule.py          learning rate of every update, from the options
    config_file.py       files of --config: YAML, JSON, run.json
    option.py            declaration of one option
    other_names.py       what other programs call the options, for the hint after an unknown one
    ranks.py             number of ranks, from the environment that launchers set
    command_line.py      flags and a config file -> a dataclass; the parser of the commands without one

Nothing here opens a file or builds anything: `cocos.assembly` does. Defaults are the paper's. The flags of
the released CoCoS commands are aliases of the names used here. Only `trl_configs.py` and `schedule.py` import
torch, so that --help and errors in options are fast.
"""
