package klog.spark

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.streaming.{StreamingRelationV2, WriteToStream}

/** Leaves out the columns of a stream that its query does not use: Spark prunes only those of batches.
  *
  * The rule: a projection or an aggregation says which columns are used, if only projections, filters,
  * watermarks and nodes that drop duplicates lie between it and the stream. A stream that a query reads at
  * several places stays one source, with the columns of all of them: its checkpoint has an entry for each source.
  */
object StreamColumns {

  /** Returns a query whose streams have only the columns that it uses. */
  def prune(write: WriteToStream): LogicalPlan = {
    val used = mutable.LinkedHashMap.empty[StreamingRelationV2, Option[AttributeSet]]
    collect(write, None, used)
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      write.transformUp {
        case relation: StreamingRelationV2 =>
          used.get(relation).flatten.fold[LogicalPlan](relation)(pruned(relation, _))
        case project: Project if !project.references.subsetOf(project.child.outputSet) =>
          project.copy(projectList =
            project.projectList.filter(_.references.subsetOf(project.child.outputSet))
          )
      }
    }
  }

  /** Throws if a node of a plan lacks something that is used here.
    *
    * @throws ReflectiveOperationException
    *   if a method is missing
    */
  def probe(): Unit = {
    for (node <- Seq(classOf[Project], classOf[Aggregate])) node.getMethod("child")
    classOf[Project].getMethod("projectList")
    val passing =
      Seq(
        classOf[Filter],
        classOf[EventTimeWatermark],
        classOf[Deduplicate],
        classOf[DeduplicateWithinWatermark]
      )
    for (node <- passing) node.getMethod("references")
    classOf[SubqueryAlias].getMethod("child")
    classOf[StreamingRelationV2].getMethod("output")
    val _ = AnalysisHelper.getClass.getMethod("allowInvokingTransformsInAnalyzer", classOf[() => _])
  }

  /** Adds what each stream below a node is used for: some columns, or None for all. */
  private def collect(
      plan: LogicalPlan,
      columns: Option[AttributeSet],
      used: mutable.Map[StreamingRelationV2, Option[AttributeSet]]
  ): Unit = plan match {
    case project: Project => collect(project.child, Some(referencesOf(project, columns)), used)
    case aggregate: Aggregate => collect(aggregate.child, Some(aggregate.references), used)
    case _: Filter | _: EventTimeWatermark | _: Deduplicate | _: DeduplicateWithinWatermark =>
      collect(plan.children.head, columns.map(_ ++ plan.references), used)
    case alias: SubqueryAlias => collect(alias.child, columns, used)
    case relation: StreamingRelationV2 =>
      val earlier = used.getOrElse(relation, Some(AttributeSet.empty))
      used(relation) = for (before <- earlier; here <- columns) yield before ++ here
    case _ => plan.children.foreach(collect(_, None, used))
  }

  /** Returns what a projection needs for some of its columns, or for all: Spark's windows of time hand on each
    * column.
    */
  private def referencesOf(project: Project, columns: Option[AttributeSet]): AttributeSet =
    columns.fold(project.references) { above =>
      AttributeSet(project.projectList.filter(item => above.contains(item.toAttribute)).flatMap(_.references))
    }

  private def pruned(relation: StreamingRelationV2, used: AttributeSet): LogicalPlan =
    relation.table match {
      case table: KlogTable =>
        val needed = relation.output.filter(used.contains)
        // Python cannot read rows without columns.
        val kept = if (needed.nonEmpty) needed else relation.output.filter(_.name == "partition").take(1)
        if (kept.isEmpty || kept.length == relation.output.length) relation
        else {
          val smaller = KlogRule.withValue(relation, relation.output, kept)
          KlogRule.withValue(smaller, table, table.withColumns(kept.map(_.name).toSet))
        }
      case _ => relation
    }
}
