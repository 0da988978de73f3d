"""What a run prints: start and end, progress, examples; and which messages of libraries it silences."""
