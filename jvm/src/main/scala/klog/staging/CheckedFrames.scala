package klog.staging

import java.io.{ByteArrayOutputStream, InputStream, IOException}
import java.nio.ByteBuffer
import java.util.zip.CRC32C

/** Reads the bytes of frames, each after its CRC has been checked.
  *
  * {{{
  * frame   length int32 | CRC-32C int32 | bytes
  * end     -1 int32 | frames before it int32
  * }}}
  *
  * The rule: damaged bytes, and an end that is not marked, are an `IOException` before any byte of the frame
  * is given out.
  */
final class CheckedFrames(in: InputStream) extends InputStream {
  import CheckedFrames._

  private var frame = Array.emptyByteArray
  private var at = 0
  private var end = 0
  private var frameCount = 0
  private var isComplete = false

  override def read(): Int =
    if (isReady) {
      at += 1
      frame(at - 1) & 0xff
    } else -1

  override def read(into: Array[Byte], start: Int, size: Int): Int =
    if (size == 0) 0
    else if (isReady) {
      val count = math.min(size, end - at)
      System.arraycopy(frame, at, into, start, count)
      at += count
      count
    } else -1

  override def close(): Unit = in.close()

  private def isReady: Boolean = {
    if (at == end && !isComplete) next()
    at < end
  }

  /** Reads a frame, or the mark of the end. */
  private def next(): Unit = {
    val header = in.readNBytes(HeaderBytes)
    if (header.length < HeaderBytes) throw damaged("they end early")
    val (length, check) = (ByteBuffer.wrap(header).getInt, ByteBuffer.wrap(header).getInt(4))
    if (length == EndMark) {
      if (check != frameCount) throw damaged(s"$frameCount frames instead of $check")
      isComplete = true
    } else {
      readFrame(length, check)
      frameCount += 1
    }
  }

  private def readFrame(length: Int, crc: Int): Unit = {
    if (length <= 0 || length > MaxFrameBytes) throw damaged(s"a frame of $length bytes")
    if (frame.length < length) frame = new Array[Byte](length)
    if (in.readNBytes(frame, 0, length) < length) throw damaged("they end early")
    if (crcOf(frame, 0, length) != crc) throw damaged("a frame has another CRC")
    at = 0
    end = length
  }
}

object CheckedFrames {
  private val HeaderBytes = 8
  private val EndMark = -1

  /** A batch with its key. */
  private val MaxFrameBytes = EncodedBatch.MaxBytes + (1 << 20)

  /** Begins a frame; its bytes are written after that. */
  def begin(bytes: ByteArrayOutputStream): Unit = {
    bytes.reset()
    bytes.write(new Array[Byte](HeaderBytes), 0, HeaderBytes)
  }

  /** Returns the frame. */
  def end(bytes: ByteArrayOutputStream): Array[Byte] = {
    val frame = bytes.toByteArray
    ByteBuffer.wrap(frame).putInt(frame.length - HeaderBytes).putInt(crcOf(frame, HeaderBytes, frame.length))
    frame
  }

  /** Returns the mark of the end, after so many frames. */
  def endMark(frameCount: Int): Array[Byte] =
    ByteBuffer.allocate(HeaderBytes).putInt(EndMark).putInt(frameCount).array

  private def crcOf(bytes: Array[Byte], start: Int, end: Int): Int = {
    val crc = new CRC32C
    crc.update(bytes, start, end - start)
    crc.getValue.toInt
  }

  private def damaged(reason: String) = new IOException(
    s"Spark's shuffle has damaged the batches of this write: $reason. Check the local disks of the executors, " +
      "or set distributionMode=none"
  )
}
