"""Record batches and their records, all formats: bytes to Arrow columns and back."""
