/** The log that inserts usage records into a cluster, with its spool in sight and pauses that a test can wait for. */
import { globSync, readFileSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { CLUSTER_LOG_LIMITS, openClusterLog } from '../../api/chat/records/cluster-log.ts'
import type { ClickHouseAddress } from '../../pipeline/contract/clickhouse-address.ts'
import { memoryLog } from './api.ts'
import { usageRecord } from './usage-records.ts'

/** The day of records, where nothing else is said. */
export const DAY = '2026-03-10'
export const NEXT_DAY = '2026-03-11'

/** What the log says where it cannot insert, and where it can again. */
export const HINDERED = 'usage records cannot be inserted; they are kept in the spool and tried again'
export const AGAIN = 'usage records are inserted again'

/** A pause that no test outlasts: nothing is inserted before close(). */
export const NEVER = { gatherMs: 1_000_000, longestPauseMs: 1_000_000 }

/** Opens a log over `dataDir`; `told` gives its messages of one wording. */
export function openLog(
  dataDir: string,
  cluster: ClickHouseAddress,
  limits: Partial<typeof CLUSTER_LOG_LIMITS> = {},
) {
  const { log, lines, messages } = memoryLog()
  const usage = openClusterLog(dataDir, cluster, {
    log,
    clock: () => new Date(),
    limits: { ...CLUSTER_LOG_LIMITS, gatherMs: 5, longestPauseMs: 20, retryMs: 5, ...limits },
  })
  return { ...usage, lines, told: (text: string) => messages().filter(({ msg }) => msg === text) }
}

/** The folder of the files of all days. */
export const spoolRoot = (dataDir: string) => join(dataDir, 'spool', 'usage')

/** The folder of a day's files. */
export const spoolFolder = (dataDir: string, day: string) => join(spoolRoot(dataDir), `date=${day}`)

/** Paths of the files in the spool. */
export const spoolFiles = (dataDir: string) => globSync(join(spoolRoot(dataDir), '*', 'chat-*'))

/** Ids in the spool; each file must end with a whole line. */
export function spooled(dataDir: string): string[] {
  const texts = spoolFiles(dataDir).map((path) => readFileSync(path, 'utf8'))
  return texts.flatMap((text) =>
    [...text.matchAll(/"request_id":"([^"]*)".*\n/g)].map(([, id]) => String(id)),
  )
}

/** Makes files look as those of a process that died long ago. */
export function age(paths: readonly string[]): void {
  for (const path of paths) utimesSync(path, new Date(0), new Date(0))
}

/** Records of a day, with ids of its name and their number. */
export const numbered = (count: number, day = DAY) =>
  Array.from({ length: count }, (_, index) =>
    usageRecord({ ts: `${day}T12:00:00.000Z`, request_id: `${day} ${index}` }),
  )
