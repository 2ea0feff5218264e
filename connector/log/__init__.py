"""A topic's state: its partitions, their segments and the bounds that a reader may trust."""
