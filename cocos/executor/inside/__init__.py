"""What runs inside a sandbox, as a program of its own; the trusted side shares its codec."""
