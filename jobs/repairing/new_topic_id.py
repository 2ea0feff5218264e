"""How `klog repair --topic-id` asks for a new id; alone here, as `klog --help` shows it."""

NEW_ID = "new"
