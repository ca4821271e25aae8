"""How it is shown; computes nothing."""
