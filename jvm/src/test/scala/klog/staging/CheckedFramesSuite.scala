package klog.staging

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, IOException}

import munit.FunSuite

/** Frames give their bytes back, and each byte that is wrong or missing is an error. */
class CheckedFramesSuite extends FunSuite {
  private val texts = Seq("first", "second", "the third")
  private val frames = texts.map(text => frameOf(text.getBytes))
  private val block = (frames :+ CheckedFrames.endMark(frames.length)).flatten.toArray

  test("the bytes of frames come back, one by one and together") {
    assertEquals(new String(readAll(block)), texts.mkString)
    val in = new CheckedFrames(new ByteArrayInputStream(block))
    assertEquals(Iterator.continually(in.read()).takeWhile(_ >= 0).map(_.toChar).mkString, texts.mkString)
    assertEquals(in.read(new Array[Byte](0), 0, 0), 0)
    assertEquals(in.read(new Array[Byte](1), 0, 1), -1)
  }

  test("a block without frames is empty, and one without anything is an error") {
    assertEquals(readAll(CheckedFrames.endMark(0)).toSeq, Nil)
    intercept[IOException](readAll(Array.emptyByteArray))
  }

  test("an end that is not marked is an error, also after a whole frame") {
    for (size <- block.indices) intercept[IOException](readAll(block.take(size)))
  }

  test("a frame that is missing is an error") {
    intercept[IOException](readAll(block.drop(frames.head.length)))
  }

  test("zeros are an error") {
    intercept[IOException](readAll(new Array[Byte](4096)))
  }

  test("a bit that has turned anywhere is an error") {
    for (at <- block.indices; bit <- 0 until 8) {
      val bytes = block.clone
      bytes(at) = (bytes(at) ^ (1 << bit)).toByte
      val error = intercept[IOException](readAll(bytes))
      assert(error.getMessage.startsWith("Spark's shuffle has damaged the batches"), error.getMessage)
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
