package klog.staging

import java.util.Locale

import munit.FunSuite

/** The names of segments are the same wherever a task runs. */
final class SegmentNameSuite extends FunSuite {
  test("a locale with digits of its own changes nothing") {
    val before = Locale.getDefault
    try {
      Locale.setDefault(Locale.forLanguageTag("ar-EG"))
      assert(SegmentStager.fileName(5, 3, "00ff") == "00000000000000000005-0000000003-00ff")
    } finally Locale.setDefault(before)
  }
}
