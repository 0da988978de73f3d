"""`python -m cocos`: the command `cocos`, for launchers and for an environment that is not activated."""

from cocos.cli import run

if __name__ == "__main__":
    run()
