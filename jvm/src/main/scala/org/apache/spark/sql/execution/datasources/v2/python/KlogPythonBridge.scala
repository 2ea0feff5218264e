package org.apache.spark.sql.execution.datasources.v2.python

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table}
import org.apache.spark.sql.connector.read.{InputPartition, Scan}
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.connector.write.WriterCommitMessage
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Utils
import org.apache.spark.sql.execution.python.streaming.{ForkedSourceRunner, PythonStreamingSourceRunner}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The place that touches the classes of Spark's Python data source, with `ForkedSourceRunner`.
  *
  * They are not public, so this file lies in their package. Their signatures are the same in Spark 4.2.0
  * to 4.3.0; `klog.spark.SparkVersions` lets nothing else get here.
  */
object KlogPythonBridge {

  /** Throws if a class of this Spark lacks something that is used here: then nothing of klog is installed.
    *
    * @throws ReflectiveOperationException
    *   if a method or a field is missing
    */
  def probe(): Unit = {
    val (source, creation, info) =
      (
        classOf[PythonDataSourceV2],
        classOf[PythonDataSourceCreationResult],
        classOf[PythonDataSourceReadInfo]
      )
    val (text, options, schema) = (classOf[String], classOf[CaseInsensitiveStringMap], classOf[StructType])
    classOf[PythonTable].getDeclaredField("ds")
    classOf[PythonTable].getConstructor(source, text, schema)
    source.getDeclaredMethod("dataSourceInPython_$eq", creation)
    source.getMethod("setShortName", text)
    source.getMethod("setReadInfo", info)
    source.getMethod("source")
    source.getMethod("getOrCreateDataSourceInPython", text, options, classOf[Option[_]])
    creation.getConstructor(classOf[Array[Byte]], schema)
    info.getConstructor(classOf[Array[Byte]], classOf[Seq[_]])
    Seq("func", "partitions").foreach(info.getMethod(_))
    creation.getMethod("dataSource")
    classOf[UserDefinedPythonDataSource].getMethod(
      "createReadInfoInPython",
      creation,
      schema,
      classOf[Boolean]
    )
    classOf[UserDefinedPythonDataSource].getMethod("createPythonFunction", classOf[Array[Byte]])
    classOf[PythonStreamingInputPartition].getMethod("pickedPartition")
    classOf[PythonScan].getConstructor(
      source,
      text,
      schema,
      options,
      classOf[Array[Filter]]
    )
    classOf[PythonMicroBatchStreamWithTriggerAvailableNow].getConstructor(
      source,
      text,
      schema,
      options,
      classOf[PythonStreamingSourceRunner]
    )
    ForkedSourceRunner.probe()
    classOf[PythonBatchWrite].getDeclaredMethod("pythonDataSourceWriter")
    classOf[PythonStreamingWrite].getDeclaredMethod("pythonDataSourceWriter")
    classOf[PythonWriterCommitMessage].getConstructor(classOf[Array[Byte]])
    DataSourceV2Utils.getClass.getMethod("getTableProvider", text, classOf[SQLConf])
  }

  /** Returns the Python data source of a table; None for the tables of others.
    *
    * @param name
    *   the format
    */
  def dataSourceOf(table: Table, name: String): Option[PythonDataSourceV2] = table match {
    case python: PythonTable if python.name.equalsIgnoreCase(name) =>
      val field = classOf[PythonTable].getDeclaredField("ds")
      field.setAccessible(true)
      Some(field.get(python).asInstanceOf[PythonDataSourceV2])
    case _ => None
  }

  /** Returns the columns of a table that [[dataSourceOf]] knows. */
  def schemaOf(table: Table): StructType = table.asInstanceOf[PythonTable].schema

  /** Returns a data source of the same class that is not made in Python yet. */
  def newSource(dataSource: PythonDataSourceV2, name: String): PythonDataSourceV2 = {
    val source = dataSource.getClass.getDeclaredConstructor().newInstance()
    source.setShortName(name)
    source
  }

  /** Lets Python check the options of a table that the session's catalog is to create.
    *
    * @param options
    *   as Spark hands them over for the columns of such a table
    */
  def checkNewTable(name: String, options: CaseInsensitiveStringMap): Unit =
    DataSourceV2Utils.getTableProvider(name, SQLConf.get).foreach(_.inferSchema(options))

  /** Returns the data source as Spark has pickled it; it makes one if there is none.
    *
    * @param schema
    *   the columns of the table
    */
  def pickledDataSource(
      dataSource: PythonDataSourceV2,
      name: String,
      options: CaseInsensitiveStringMap,
      schema: StructType
  ): Array[Byte] = dataSource.getOrCreateDataSourceInPython(name, options, Some(schema)).dataSource

  /** Plans a batch: one call to Python.
    *
    * @param pickled
    *   the data source that plans
    * @param schema
    *   the columns to read
    */
  def planBatch(dataSource: PythonDataSourceV2, pickled: Array[Byte], schema: StructType): BatchPlan = {
    val creation = PythonDataSourceCreationResult(pickled, schema)
    new BatchPlan(dataSource.source.createReadInfoInPython(creation, schema, false))
  }

  /** A batch as Python has planned it.
    *
    * @param tasks
    *   its partitions, pickled
    */
  final class BatchPlan(info: PythonDataSourceReadInfo) {
    def tasks: Seq[Array[Byte]] = info.partitions

    /** Returns Python's scan of some of the tasks. */
    def pythonScan(
        dataSource: PythonDataSourceV2,
        name: String,
        schema: StructType,
        options: CaseInsensitiveStringMap,
        tasks: Seq[Array[Byte]]
    ): Scan = {
      val planned = copyOf(dataSource, name, PythonDataSourceCreationResult(Array.emptyByteArray, schema))
      planned.setReadInfo(PythonDataSourceReadInfo(info.func, tasks))
      scan(planned, name, schema, options)
    }
  }

  /** Starts the Python process of a stream before the stream starts. */
  def prepareStream(dataSource: PythonDataSourceV2): Unit =
    ForkedSourceRunner.prepare(dataSource.source.createPythonFunction(Array.emptyByteArray))

  /** Returns Python's scan of a stream by another data source, whose reader is in a fork of a warm process.
    *
    * @param pickled
    *   the data source that plans and reads
    * @param schema
    *   the columns to read
    */
  def streamScan(
      dataSource: PythonDataSourceV2,
      name: String,
      pickled: Array[Byte],
      schema: StructType,
      options: CaseInsensitiveStringMap
  ): Scan = {
    val planner = copyOf(dataSource, name, PythonDataSourceCreationResult(pickled, schema))
    new PythonScan(planner, name, schema, options, Array.empty) {
      override def toMicroBatchStream(checkpoint: String): MicroBatchStream =
        if (!ForkedSourceRunner.isPossible) super.toMicroBatchStream(checkpoint)
        else {
          val runner = new ForkedSourceRunner(planner.source.createPythonFunction(pickled), schema)
          runner.init()
          new PythonMicroBatchStreamWithTriggerAvailableNow(planner, name, schema, options, runner)
        }
    }
  }

  /** Returns Python's scan.
    *
    * @param schema
    *   the columns to read
    */
  def scan(
      dataSource: PythonDataSourceV2,
      name: String,
      schema: StructType,
      options: CaseInsensitiveStringMap
  ): Scan = {
    val table: SupportsRead = new PythonTable(dataSource, name, schema)
    table.newScanBuilder(options).build()
  }

  /** Returns the writer that Python has planned for a write of a batch or of a stream, pickled. It is there
    * once the write has made a factory.
    */
  def plannedWriter(write: AnyRef): Array[Byte] = {
    val writer = write.getClass.getDeclaredMethod("pythonDataSourceWriter")
    writer.setAccessible(true)
    writer.invoke(write).asInstanceOf[Array[Byte]]
  }

  /** Returns a task's message to Python's commit.
    *
    * @param pickled
    *   a pickle that gives a `WriterCommitMessage` of PySpark
    */
  def commitMessage(pickled: Array[Byte]): WriterCommitMessage = PythonWriterCommitMessage(pickled)

  /** Returns the task of a stream's partition, pickled. */
  def taskOf(partition: InputPartition): Array[Byte] =
    partition.asInstanceOf[PythonStreamingInputPartition].pickedPartition

  /** Returns a data source of the same class that is already made in Python. */
  private def copyOf(
      dataSource: PythonDataSourceV2,
      name: String,
      created: PythonDataSourceCreationResult
  ): PythonDataSourceV2 = {
    val copy = newSource(dataSource, name)
    val setter = classOf[PythonDataSourceV2]
      .getDeclaredMethod("dataSourceInPython_$eq", classOf[PythonDataSourceCreationResult])
    setter.setAccessible(true)
    setter.invoke(copy, created)
    copy
  }
}
