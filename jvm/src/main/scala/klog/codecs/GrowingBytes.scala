package klog.codecs

import java.util.{Arrays => JavaArrays}

/** Bytes that are added one after the other, in an array that grows; used again and again. */
final class GrowingBytes {
  private var array = new Array[Byte](1 << 16)

  var end: Int = 0

  /** The bytes, up to [[end]]. It is another array after more room was asked for. */
  def data: Array[Byte] = array

  def clear(): Unit = end = 0

  /** Makes room for more bytes. */
  def reserve(bytes: Int): Unit = {
    val needed = Math.addExact(end, bytes)
    if (needed > array.length) {
      val size = math.max(needed.toLong, math.min(2L * array.length, Int.MaxValue - 8L)).toInt
      array = JavaArrays.copyOf(array, size)
    }
  }

  def add(bytes: Array[Byte], at: Int, size: Int): Unit = {
    reserve(size)
    System.arraycopy(bytes, at, array, end, size)
    end += size
  }

  /** Adds four bytes, the lowest first. */
  def addLittleEndian(value: Int): Unit = {
    reserve(4)
    LittleEndian.put(array, end, value)
    end += 4
  }
}
