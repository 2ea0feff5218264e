package klog.logformat

/** The partition of a key, as Kafka's producers choose it (docs/format.md, 15). */
object Murmur2 {
  private val Seed = 0x9747b28c
  private val M = 0x5bd1e995

  def partition(key: ByteRange, partitions: Int): Int =
    (hash(key.data, key.start, key.length) & Int.MaxValue) % partitions

  private[logformat] def hash(data: Array[Byte], start: Int, length: Int): Int = {
    var hash = Seed ^ length
    val wordsEnd = start + (length & ~3)
    var at = start
    while (at < wordsEnd) {
      val word = ((data(at) & 0xff) | ((data(at + 1) & 0xff) << 8) | ((data(at + 2) & 0xff) << 16) |
        (data(at + 3) << 24)) * M
      hash = (hash * M) ^ ((word ^ (word >>> 24)) * M)
      at += 4
    }
    val left = length & 3
    if (left > 2) hash ^= (data(wordsEnd + 2) & 0xff) << 16
    if (left > 1) hash ^= (data(wordsEnd + 1) & 0xff) << 8
    if (left > 0) hash = (hash ^ (data(wordsEnd) & 0xff)) * M
    hash = (hash ^ (hash >>> 13)) * M
    hash ^ (hash >>> 15)
  }
}
