"""Records of Kafka's internal topics: offsets, groups, transactions."""
