"""klog's jar: the JVM engine, compiled from the Scala sources that every klog brings."""
