"""Options of the entry points: one dataclass per command, and the groups of options that commands share.

    cocos_options.py     train.py, without TRL's options
    training_options.py  what both training stages share, and boost/boost_train.py without TRL's options
    trl_configs.py       both, with the options of TRL and transformers
    eval_config.py       test.py
    boost_data_config.py scripts/make_boost_data.py
    shared_options.py    prompts and executor
    turn_options.py      rules between the turns, and repair agents
    training_data.py     the problems and the prompt protocol that they name
    option.py            declaration of one option
    command_line.py      flags and a YAML file -> a dataclass; the parser of the commands without one

Defaults are the paper's. The flags of the released CoCoS commands are aliases of the names used here. Only
`trl_configs.py` imports torch, so that --help and errors in options and data are fast.
"""
