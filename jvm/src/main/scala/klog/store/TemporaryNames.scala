package klog.store

import java.security.SecureRandom

/** Names of temporary files, which lie in the directory of the file that they become. Vacuum recognises them
  * (`klog.connector.store.temporary_names`).
  */
object TemporaryNames {
  private val random = new SecureRandom

  /** Returns a name that no other call, process or machine has. */
  def of(name: String): String = f".$name.${random.nextLong()}%016x.tmp"
}
