"""The stage before CoCoS: supervised fine-tuning that teaches the two-turn format."""
