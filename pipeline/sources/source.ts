import type { Config } from '../config.ts'
import { openDropFolder } from './files.ts'
import type { UsageSource } from './usage-source.ts'

/** Opens the source of USAGE_SOURCE; `rawFolder` is DATA_DIR/raw. */
export async function openSource({ usageSource }: Config, rawFolder: string): Promise<UsageSource> {
  if (usageSource === undefined) return openDropFolder(rawFolder)
  // Loads the cluster's client only for installations with a cluster.
  const { openClickHouse } = await import('./clickhouse/source.ts')
  return openClickHouse(usageSource)
}
