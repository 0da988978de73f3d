"""The stage before CoCoS: supervised fine-tuning that teaches a base model the two-turn format."""
