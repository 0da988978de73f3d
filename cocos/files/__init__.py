"""JSON lines, durable writes, run records; the package's own files, extras and parser."""
