"""How `repair` works out what lost commits held, one idea a module."""
