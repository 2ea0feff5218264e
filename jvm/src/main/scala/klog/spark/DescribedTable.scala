package klog.spark

import java.util

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{CatalogEntry, Column, Table, TableCapability}

/** Python's table with what the session's catalog keeps of it, for commands that show that and read nothing. */
final class DescribedTable(python: Table, entry: CatalogEntry) extends Table {
  override def name(): String = python.name
  override def columns(): Array[Column] = python.columns
  override def capabilities(): util.Set[TableCapability] = python.capabilities
  override def properties(): util.Map[String, String] = entry.properties.asJava
}
