/** Opens published snapshots as the API does, without the API. */
import { basename, dirname } from 'node:path'
import { openCatalogue } from '../../api/datasets/snapshots/catalogue.ts'
import { attachSnapshots } from '../../api/datasets/snapshots/attached.ts'
import { openDatabase } from '../../api/datasets/snapshots/database.ts'
import type { Snapshot } from '../../api/datasets/snapshots/facts.ts'
import { openSnapshots, type FollowOptions } from '../../api/datasets/snapshots/current.ts'
import { createLog } from '../../api/process/log.ts'

export type OpenSnapshot = Snapshot & { readonly close: () => Promise<void> }

/** The snapshot in this folder, over the connections of clients. */
export async function openSnapshot(path: string): Promise<OpenSnapshot> {
  const folder = dirname(path)
  const database = await openDatabase({ memory: '4GB', folder })
  const attached = attachSnapshots({ database, folder, log: createLog('silent') })
  try {
    const { facts } = await attached.hold(basename(path))
    return { ...facts, query: database.queryOf(facts.id, 'clients'), close: () => database.close() }
  } catch (error) {
    await database.close()
    throw error
  }
}

/** The snapshots under `dataDir`, as the API follows them. */
export function followSnapshots(dataDir: string, options: FollowOptions) {
  return openSnapshots({ dataDir, memory: '1GB', catalogue: openCatalogue(dataDir, options.log), ...options })
}
