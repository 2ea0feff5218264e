package klog.staging

import java.nio.{ByteBuffer, ByteOrder}

/** BLAKE2b with a digest of 8 bytes and without a key (RFC 7693), which Java does not have. */
object Blake2b {
  private val BlockBytes = 128
  private val DigestBytes = 8
  private val Initial = Array(
    0x6a09e667f3bcc908L, 0xbb67ae8584caa73bL, 0x3c6ef372fe94f82bL, 0xa54ff53a5f1d36f1L, 0x510e527fade682d1L,
    0x9b05688c2b3e6c1fL, 0x1f83d9abfb41bd6bL, 0x5be0cd19137e2179L
  )
  private val Order = Array(
    Array(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    Array(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3),
    Array(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4),
    Array(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8),
    Array(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13),
    Array(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9),
    Array(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11),
    Array(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10),
    Array(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5),
    Array(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0)
  )
  private val Rounds = 12

  /** Returns the digest as an unsigned big-endian number. */
  def digest(data: Array[Byte]): Long = {
    val state = Initial.clone
    state(0) ^= 0x01010000L ^ DigestBytes
    val blocks = math.max(1, (data.length + BlockBytes - 1) / BlockBytes)
    for (block <- 0 until blocks) {
      val start = block * BlockBytes
      val size = math.min(BlockBytes, data.length - start)
      val bytes = ByteBuffer.allocate(BlockBytes).order(ByteOrder.LITTLE_ENDIAN)
      bytes.put(data, start, size)
      compress(
        state,
        Array.tabulate(16)(word => bytes.getLong(8 * word)),
        start + size.toLong,
        block == blocks - 1
      )
    }
    java.lang.Long.reverseBytes(state(0))
  }

  private def compress(state: Array[Long], words: Array[Long], hashedBytes: Long, isLast: Boolean): Unit = {
    val v = state ++ Initial
    v(12) ^= hashedBytes
    if (isLast) v(14) ^= -1L
    for (round <- 0 until Rounds) {
      val order = Order(round % Order.length)
      def mix(a: Int, b: Int, c: Int, d: Int, pair: Int): Unit = {
        v(a) += v(b) + words(order(2 * pair))
        v(d) = java.lang.Long.rotateRight(v(d) ^ v(a), 32)
        v(c) += v(d)
        v(b) = java.lang.Long.rotateRight(v(b) ^ v(c), 24)
        v(a) += v(b) + words(order(2 * pair + 1))
        v(d) = java.lang.Long.rotateRight(v(d) ^ v(a), 16)
        v(c) += v(d)
        v(b) = java.lang.Long.rotateRight(v(b) ^ v(c), 63)
      }
      for (column <- 0 until 4) mix(column, 4 + column, 8 + column, 12 + column, column)
      for (column <- 0 until 4)
        mix(column, 4 + (column + 1) % 4, 8 + (column + 2) % 4, 12 + (column + 3) % 4, 4 + column)
    }
    for (word <- state.indices) state(word) ^= v(word) ^ v(word + 8)
  }
}
