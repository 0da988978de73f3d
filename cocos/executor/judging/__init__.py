"""How each test is judged, and how evidence becomes a verdict."""
