package klog

import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, SupportsTriggerAvailableNow}

package object spark {

  /** What Spark makes of a Python stream reader that limits its micro-batches, as all of klog's do. */
  type PythonStream = MicroBatchStream with SupportsTriggerAvailableNow
}
