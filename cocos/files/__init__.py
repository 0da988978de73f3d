"""JSON lines, run records and durable writes."""
