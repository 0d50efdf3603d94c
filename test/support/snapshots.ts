/** Opens published snapshots as the API does, without the API. */
import { basename, dirname } from 'node:path'
import { Catalogue } from '../../api/datasets/snapshots/catalogue.ts'
import { openSnapshots, type SnapshotOptions } from '../../api/datasets/snapshots/current.ts'
import type { Snapshot } from '../../api/datasets/snapshots/facts.ts'
import { createLog } from '../../api/process/log.ts'

export type OpenSnapshot = Snapshot & { readonly close: () => Promise<void> }

/** The snapshot in this folder, over the connections of clients. */
export async function openSnapshot(path: string): Promise<OpenSnapshot> {
  const snapshots = await followSnapshots(dirname(dirname(path)), { log: createLog('silent'), memory: '4GB' })
  const snapshot = await snapshots.take(basename(path), 'clients')
  return { ...snapshot, close: () => snapshots.close() }
}

/** The snapshots under `dataDir`, as the API follows them. */
export function followSnapshots(
  dataDir: string,
  options: Pick<SnapshotOptions, 'log' | 'prepare'> & Partial<Pick<SnapshotOptions, 'memory'>>,
) {
  return openSnapshots({ dataDir, memory: '1GB', catalogue: new Catalogue(dataDir, options.log), ...options })
}
