package klog.logformat

/** Zig-zag varints in a byte array.
  *
  * The rule (docs/format.md, 3): a varint has at most 5 bytes, a varlong at most 10; surplus high bits
  * in the last byte are dropped, and a longer form than needed is legal. A number comes with the
  * position after it: the caller checks that against its record.
  */
object Varint {

  /** Reads a varint.
    *
    * @return
    *   the position after it in the high 32 bits, its value in the low ones
    */
  def read(data: Array[Byte], at: Int): Long = {
    val first = data(at)
    if (first >= 0) pack(at + 1, decoded(first))
    else {
      val second = data(at + 1)
      if (second >= 0) pack(at + 2, decoded((first & 0x7f) | (second << 7))) else readMore(data, at)
    }
  }

  def value(packed: Long): Int = packed.toInt

  def end(packed: Long): Int = (packed >>> 32).toInt

  /** Returns the value of the varlong at a position; [[varlongEnd]] says where it ends. */
  def varlong(data: Array[Byte], at: Int): Long = {
    val first = data(at)
    if (first >= 0) decoded(first)
    else {
      val second = data(at + 1)
      if (second >= 0) decoded((first & 0x7f) | (second << 7)) else readMoreOfLong(data, at)
    }
  }

  /** Returns how many bytes a number takes. */
  def size(value: Int): Int = (31 - Integer.numberOfLeadingZeros(zigZag(value) | 1)) / 7 + 1

  def sizeOfLong(value: Long): Int = (63 - java.lang.Long.numberOfLeadingZeros(zigZagLong(value) | 1)) / 7 + 1

  /** Writes a varint.
    *
    * @return
    *   the position after it
    */
  def write(data: Array[Byte], at: Int, value: Int): Int = {
    var raw = zigZag(value)
    var position = at
    while ((raw & ~0x7f) != 0) {
      data(position) = (raw | 0x80).toByte
      raw >>>= 7
      position += 1
    }
    data(position) = raw.toByte
    position + 1
  }

  /** Writes a varlong; returns the position after it. */
  def writeLong(data: Array[Byte], at: Int, value: Long): Int = {
    var raw = zigZagLong(value)
    var position = at
    while ((raw & ~0x7fL) != 0) {
      data(position) = (raw | 0x80).toByte
      raw >>>= 7
      position += 1
    }
    data(position) = raw.toByte
    position + 1
  }

  private def readMoreOfLong(data: Array[Byte], at: Int): Long = {
    var raw = 0L
    var shift = 0
    var position = at
    var byte = data(position)
    while (byte < 0) {
      raw |= (byte & 0x7fL) << shift
      shift += 7
      position += 1
      if (shift > 63) throw new CorruptRecordError("varint of more than 10 bytes", at)
      byte = data(position)
    }
    raw |= (byte & 0x7fL) << shift
    (raw >>> 1) ^ -(raw & 1)
  }

  def varlongEnd(data: Array[Byte], at: Int): Int = {
    var position = at
    while (data(position) < 0) position += 1
    position + 1
  }

  private def readMore(data: Array[Byte], at: Int): Long = {
    var raw = 0
    var shift = 0
    var position = at
    var byte = data(position)
    while (byte < 0) {
      raw |= (byte & 0x7f) << shift
      shift += 7
      position += 1
      if (shift > 28) throw new CorruptRecordError("varint of more than 5 bytes", at)
      byte = data(position)
    }
    raw |= (byte & 0x7f) << shift
    pack(position + 1, decoded(raw))
  }

  private def zigZag(value: Int): Int = (value << 1) ^ (value >> 31)

  private def zigZagLong(value: Long): Long = (value << 1) ^ (value >> 63)

  private def decoded(raw: Int): Int = (raw >>> 1) ^ -(raw & 1)

  private def pack(end: Int, value: Int): Long = (end.toLong << 32) | (value & 0xffffffffL)
}
