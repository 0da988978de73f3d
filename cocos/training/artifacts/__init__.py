"""Files that a run writes: checkpoints, weights that plain transformers can load, and a model card."""
