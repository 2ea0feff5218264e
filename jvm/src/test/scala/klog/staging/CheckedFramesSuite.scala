package klog.staging

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, IOException}

import munit.FunSuite

/** Frames give their bytes back, and each byte that is wrong or missing is an error. */
class CheckedFramesSuite extends FunSuite {
  private val texts = Seq("first", "", "the third")
  private val frames = texts.map(text => frameOf(text.getBytes))

  test("the bytes of frames come back, one by one and together") {
    val bytes = frames.flatten.toArray
    assertEquals(
      new String(new CheckedFrames(new ByteArrayInputStream(bytes)).readAllBytes()),
      texts.mkString
    )
    val in = new CheckedFrames(new ByteArrayInputStream(bytes))
    assertEquals(Iterator.continually(in.read()).takeWhile(_ >= 0).map(_.toChar).mkString, texts.mkString)
    assertEquals(in.read(new Array[Byte](0), 0, 0), 0)
    assertEquals(in.read(new Array[Byte](1), 0, 1), -1)
  }

  test("an end within a frame is an error") {
    val frame = frames.head
    for (size <- 1 until frame.length) intercept[IOException](readAll(frame.take(size)))
  }

  test("a bit that has turned anywhere is an error") {
    val frame = frames.head
    for (at <- frame.indices; bit <- 0 until 8) {
      val bytes = frame.clone
      bytes(at) = (bytes(at) ^ (1 << bit)).toByte
      val error = intercept[IOException](readAll(bytes))
      assert(error.getMessage.startsWith("the bytes of a shuffle are damaged: "), error.getMessage)
    }
  }

  private def frameOf(content: Array[Byte]): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    CheckedFrames.begin(bytes)
    bytes.write(content)
    CheckedFrames.end(bytes)
  }

  private def readAll(bytes: Array[Byte]): Array[Byte] =
    new CheckedFrames(new ByteArrayInputStream(bytes)).readAllBytes()
}
