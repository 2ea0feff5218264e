package klog.staging

/** Settings of a topic without a codec, in batches of 512 KiB. */
object PlainSettings {
  val all: StagingSettings = StagingSettings(
    "none",
    None,
    1 << 19,
    1 << 20,
    1 << 30,
    1 << 30,
    1 << 20,
    4096,
    65536,
    false,
    false,
    None,
    None,
    "murmur2"
  )
}
