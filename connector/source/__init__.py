"""Plan and read: options to offset ranges, ranges to slices, slices to Arrow."""
