"""Write topics: rows to segments on a store, and one commit that makes them visible."""
