import type { Config } from '../config.ts'
import { openDropFolder } from './files.ts'
import type { UsageSource } from './usage-source.ts'

/** Opens the source that USAGE_SOURCE names; `rawFolder` is DATA_DIR/raw. */
export async function openSource({ usageSource }: Config, rawFolder: string): Promise<UsageSource> {
  if (usageSource === undefined) return openDropFolder(rawFolder)
  // Only those who have a cluster wait for its client to load.
  const { openClickHouse } = await import('./clickhouse/source.ts')
  return openClickHouse(usageSource)
}
