package klog.staging

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8

/** Who writes under a transactional id. */
final case class Writer(name: String, batchId: Long, queryId: String, runId: String)

/** One attempt to run one task.
  *
  * @param index
  *   the number of the task in its write
  * @param id
  *   what the names of the files of this attempt have, and of no other one
  * @param nowMs
  *   the time of staging
  */
final case class TaskAttempt(index: Int, id: String, nowMs: Long, producerId: Long, producerEpoch: Short)

object TaskAttempt {
  private val EpochCount = (1L << 15) - 1
  private val MinProducerId = 1L << 62

  /** Derives the producer and the attempt id (docs/write-plan.md, A task).
    *
    * @param attempt
    *   a number that no other attempt of any task of the write has
    */
  def of(plan: WritePlan, writer: Option[Writer], index: Int, attempt: Long, nowMs: Long): TaskAttempt = {
    val name = writer.fold(plan.writeId)(_.name)
    val number = writer.fold(0L)(_.batchId)
    val text = name.getBytes(UTF_8)
    val data = ByteBuffer.allocate(16 + text.length)
    data.putLong(index.toLong).putLong(number / EpochCount).put(text)
    val hash = Blake2b.digest(data.array) >>> 2
    val id = Blake2b.digest(plan.writeId.getBytes(UTF_8)) + attempt
    TaskAttempt(index, f"$id%016x", nowMs, MinProducerId + hash, (number % EpochCount).toShort)
  }
}
