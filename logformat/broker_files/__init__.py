"""The small files of a broker, and the names in its log directory."""
