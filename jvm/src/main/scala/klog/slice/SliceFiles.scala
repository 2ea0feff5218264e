package klog.slice

import java.io.FileNotFoundException

import klog.logformat.PartitionMetadata
import klog.store.{SegmentFile, SegmentStore}

/** Opens the very file that a slice was planned on.
  *
  * The rule (docs/slice.md, Reading 1): the file that a commit names has the size that its commit says.
  * A broker's file is the one that has the identity, the stamp and the size of the plan, under its name
  * or that with `.deleted`, in a topic that is still the same one.
  */
object SliceFiles {
  private val MaxMetadataBytes = 1 << 20

  /** Opens the file of a slice.
    *
    * @throws SliceChangedError
    *   if it is another file now, or it has gone
    * @throws CorruptFileError
    *   if a committed file has another size than its commit says
    * @throws java.io.FileNotFoundException
    *   if it is missing; S3 says so only when it is read
    */
  def open(store: SegmentStore, slice: Slice, counts: ReadCounts): SegmentFile =
    if (slice.isCommitted) openCommitted(store, slice) else openRaw(store, slice, counts)

  /** Reads a small file.
    *
    * @param sizeBytes
    *   its size if it is known, which saves a request
    * @return
    *   its bytes; None if it is missing or larger than `maxBytes`
    */
  def readSmall(
      store: SegmentStore,
      path: String,
      maxBytes: Long,
      counts: ReadCounts,
      sizeBytes: Long = Slice.Unknown
  ): Option[Array[Byte]] =
    try {
      val file = store.open(path, sizeBytes)
      try {
        if (file.sizeBytes > maxBytes) None
        else {
          val data = new Array[Byte](file.sizeBytes.toInt)
          val size = counts.read(file, 0, data, 0, data.length)
          Some(data.take(size))
        }
      } finally file.close()
    } catch { case _: FileNotFoundException => None }

  private def openCommitted(store: SegmentStore, slice: Slice): SegmentFile = {
    val file = store.open(slice.path, slice.fileSizeBytes)
    if (file.sizeBytes != slice.fileSizeBytes) {
      file.close()
      val reason = s"it has ${file.sizeBytes} bytes, its commit says ${slice.fileSizeBytes}"
      val position = math.min(file.sizeBytes, slice.fileSizeBytes)
      throw new CorruptFileError(slice, position, reason)
    }
    file
  }

  private def openRaw(store: SegmentStore, slice: Slice, counts: ReadCounts): SegmentFile = {
    val directory = slice.path.substring(0, math.max(slice.path.lastIndexOf('/'), 0))
    if (topicId(store, directory, counts) != slice.topicId) {
      throw new SliceChangedError(slice, "the topic was deleted")
    }
    val files = Iterator(slice.path, s"${slice.path}.deleted").flatMap(openPlanned(store, slice, _))
    files.nextOption().getOrElse(throw new SliceChangedError(slice, "it is another file now"))
  }

  private def openPlanned(store: SegmentStore, slice: Slice, path: String): Option[SegmentFile] =
    try {
      val file = store.open(path, Slice.Unknown)
      if (isPlanned(slice, file)) Some(file)
      else {
        file.close()
        None
      }
    } catch { case _: FileNotFoundException => None }

  private def isPlanned(slice: Slice, file: SegmentFile): Boolean =
    file.identity == slice.identity &&
      (slice.stamp.isEmpty || slice.stamp == file.stamp) &&
      (slice.fileSizeBytes == Slice.Unknown || slice.fileSizeBytes == file.sizeBytes) &&
      file.sizeBytes >= slice.endPosition

  private def topicId(store: SegmentStore, directory: String, counts: ReadCounts): String =
    readSmall(store, s"$directory/partition.metadata", MaxMetadataBytes, counts)
      .fold("")(PartitionMetadata.topicId)
}
