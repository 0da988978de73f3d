"""What runs inside a sandbox. Started as a program of its own (`__main__.py`); only `codec` is also imported on the trusted side."""
