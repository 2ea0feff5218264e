package klog.slice

import java.lang.{Boolean => JavaBoolean, Number => JavaNumber}
import java.util.{List => JavaList, Map => JavaMap}

import scala.jdk.CollectionConverters._

/** A byte range of one segment and the records wanted from it: the unit of reading.
  *
  * The rule: docs/slice.md says what each field means, and a slice says all that a task needs. A reader
  * ignores fields that it does not know, and refuses another format.
  *
  * @param abortedTransactions
  *   producer id, first offset and offset of the marker of each, one after the other
  */
final case class Slice(
    topic: String,
    partition: Int,
    topicId: String,
    root: String,
    path: String,
    isCommitted: Boolean,
    identity: String,
    stamp: String,
    fileSizeBytes: Long,
    segmentSizeBytes: Long,
    baseOffset: Long,
    offsetShift: Long,
    startPosition: Long,
    endPosition: Long,
    firstOffset: Long,
    limitOffset: Long,
    startOffset: Long,
    endOffset: Long,
    indexPath: String,
    indexSizeBytes: Long,
    crc32c: Long,
    committedOnly: Boolean,
    abortedTransactions: Array[Long],
    markersEndOffset: Long,
    areMarkersInFile: Boolean
) {

  /** The topic-partition, as errors name it. */
  def name: String = s"$topic-$partition"

  def isCompleteSegment: Boolean = startPosition == 0 && endPosition == segmentSizeBytes

  /** Returns the slice with wanted offsets as the file has them. */
  def asInFile: Slice = if (offsetShift == 0) this
  else copy(startOffset = startOffset - offsetShift, endOffset = endOffset - offsetShift)
}

object Slice {

  /** Stands for a number that the planner does not know. */
  val Unknown: Long = -1
  private val NewestFormat = 1
  private val Each = "each"

  /** Returns the slices of a task in order, those of its runs one by one.
    *
    * @param task
    *   the task as Python's pickle or JSON has it: maps of texts, numbers, booleans and lists
    * @throws UnsupportedFormatError
    *   if it is of another version of klog
    */
  def expandTask(task: JavaList[_]): Iterator[Slice] = task.asScala.iterator.flatMap {
    case values: JavaMap[_, _] => expand(values.asInstanceOf[JavaMap[String, AnyRef]])
    case other => throw new UnsupportedFormatError(s"slice: a task has $other")
  }

  private def expand(values: JavaMap[String, AnyRef]): Iterator[Slice] = {
    checkFormat(values.get("format"))
    if (!values.containsKey(Each)) Iterator(Slice.of(new Fields(values, None)))
    else {
      val each = columns(values.get(Each))
      val count = each.values.iterator.next().size
      Iterator.range(0, count).map { number =>
        Slice.of(new Fields(values, Some(each.map { case (name, column) => name -> column.get(number) })))
      }
    }
  }

  private def columns(each: AnyRef): Map[String, JavaList[AnyRef]] = {
    val lists = each match {
      case map: JavaMap[_, _] =>
        map.asScala.collect { case (name: String, list: JavaList[_]) =>
          name -> list.asInstanceOf[JavaList[AnyRef]]
        }.toMap
      case _ => Map.empty[String, JavaList[AnyRef]]
    }
    if (lists.values.map(_.size).toSet.size != 1) {
      throw new UnsupportedFormatError(
        s"slice of format $NewestFormat: its field $Each has no lists of one length"
      )
    }
    lists
  }

  private def checkFormat(format: AnyRef): Unit = format match {
    case number: Integer if number >= 1 && number <= NewestFormat =>
    case number: java.lang.Long if number >= 1 && number <= NewestFormat =>
    case other =>
      throw new UnsupportedFormatError(
        s"slice: its format is '$other', and this klog reads 1 to $NewestFormat"
      )
  }

  private def of(fields: Fields): Slice = Slice(
    topic = fields.text("topic"),
    partition = fields.long("partition").toInt,
    topicId = fields.text("topicId"),
    root = fields.text("root"),
    path = fields.text("path"),
    isCommitted = fields.boolean("isCommitted"),
    identity = fields.text("identity"),
    stamp = fields.text("stamp"),
    fileSizeBytes = fields.long("fileSizeBytes"),
    segmentSizeBytes = fields.long("segmentSizeBytes"),
    baseOffset = fields.long("baseOffset"),
    offsetShift = fields.long("offsetShift"),
    startPosition = fields.long("startPosition"),
    endPosition = fields.long("endPosition"),
    firstOffset = fields.long("firstOffset"),
    limitOffset = fields.long("limitOffset"),
    startOffset = fields.long("startOffset"),
    endOffset = fields.long("endOffset"),
    indexPath = fields.text("indexPath"),
    indexSizeBytes = fields.long("indexSizeBytes"),
    crc32c = fields.long("crc32c"),
    committedOnly = fields.boolean("committedOnly"),
    abortedTransactions = fields.longLists("aborted"),
    markersEndOffset = fields.long("markersEndOffset"),
    areMarkersInFile = fields.boolean("areMarkersInFile")
  )

  /** The fields of a slice; what a run says once is in `shared`. */
  private final class Fields(shared: JavaMap[String, AnyRef], own: Option[Map[String, AnyRef]]) {
    def text(name: String): String = value(name) match {
      case text: String => text
      case other => throw wrongType(name, other)
    }

    def long(name: String): Long = value(name) match {
      case number: JavaNumber => number.longValue
      case other => throw wrongType(name, other)
    }

    def boolean(name: String): Boolean = value(name) match {
      case boolean: JavaBoolean => boolean
      case other => throw wrongType(name, other)
    }

    def longLists(name: String): Array[Long] = value(name) match {
      case lists: JavaList[_] => lists.asScala.iterator.flatMap(longs(name, _)).toArray
      case other => throw wrongType(name, other)
    }

    private def longs(name: String, list: Any): Iterator[Long] = list match {
      case numbers: JavaList[_] => numbers.asScala.iterator.map(_.asInstanceOf[JavaNumber].longValue)
      case other => throw wrongType(name, other)
    }

    private def value(name: String): AnyRef =
      own.flatMap(_.get(name)).orElse(Option(shared.get(name))).getOrElse {
        throw new UnsupportedFormatError(s"slice of format $NewestFormat: it has no field '$name'")
      }

    private def wrongType(name: String, value: Any) =
      new UnsupportedFormatError(s"slice of format $NewestFormat: its field '$name' is $value")
  }
}
