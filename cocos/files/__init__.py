"""JSON lines, run records, durable writes and locks, Markdown tables."""
