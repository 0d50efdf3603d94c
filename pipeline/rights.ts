/** The rights that a run needs in DATA_DIR. All that are missing are reported together. */
import { join } from 'node:path'
import { dataFolderFaults } from './program/config-check.ts'
import { RAW_FOLDER, SNAPSHOTS_FOLDER } from './contract/files.ts'
import { REFUSALS, findRefusal } from './program/refusals.ts'
import { WAREHOUSE_FILE } from './duckdb/warehouse.ts'
import { DataError, explained, isForbidden, messageOf } from './errors.ts'

/** What a run reads and writes in DATA_DIR. */
const USED = [
  WAREHOUSE_FILE,
  SNAPSHOTS_FOLDER,
  RAW_FOLDER,
  join(RAW_FOLDER, 'apps'),
  join(RAW_FOLDER, 'usage'),
]

/** Why a run cannot use DATA_DIR, a sentence per reason. */
export function rightFaults(dataDir: string): string[] {
  return dataFolderFaults(dataDir, USED)
}

/** @throws DataError that names everything in DATA_DIR that the user may not use. */
export function refuseMissingRights(dataDir: string): void {
  const faults = rightFaults(dataDir)
  const remedy = findRefusal(faults.join('\n'), REFUSALS)?.remedy
  if (remedy !== undefined) throw new DataError(`${remedy}:\n${faults.join('\n')}`)
}

/** A command's error for the operator. If a right is missing, all that are missing follow. */
export function explainedWithRights(error: unknown, dataDir: string): unknown {
  const shown = explained(error, dataDir)
  if (!isForbidden(shown)) return shown
  const faults = rightFaults(dataDir).filter((fault) => !messageOf(shown).includes(fault))
  return faults.length < 2 ? shown : new DataError([messageOf(shown), ...faults].join('\n'), { cause: error })
}
