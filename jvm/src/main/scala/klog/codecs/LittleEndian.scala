package klog.codecs

/** Numbers as codecs write them. */
object LittleEndian {
  def int(data: Array[Byte], at: Int): Int =
    (data(at) & 0xff) | ((data(at + 1) & 0xff) << 8) | ((data(at + 2) & 0xff) << 16) | (data(at + 3) << 24)

  def put(data: Array[Byte], at: Int, value: Int): Unit = {
    data(at) = value.toByte
    data(at + 1) = (value >> 8).toByte
    data(at + 2) = (value >> 16).toByte
    data(at + 3) = (value >> 24).toByte
  }
}
