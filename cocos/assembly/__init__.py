"""Construction from options: the executor, prompts, rules, objective and data of a run.

Whatever opens a file, downloads, takes a lock or starts workers because of an option is called from here;
`cocos.config` only declares and checks options. Imports neither torch nor TRL.
"""
