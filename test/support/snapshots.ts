/** Opens published snapshots as the API does, without the API. */
import { basename, dirname } from 'node:path'
import { openSnapshots } from '../../api/datasets/snapshots/current.ts'
import type { Snapshot } from '../../api/datasets/snapshots/facts.ts'
import { createLog } from '../../api/process/log.ts'

export type OpenSnapshot = Snapshot & { readonly close: () => Promise<void> }

/** The snapshot in this folder, over the connections of clients. */
export async function openSnapshot(path: string): Promise<OpenSnapshot> {
  const snapshots = await openSnapshots(dirname(dirname(path)), '4GB', createLog('silent'))
  const snapshot = await snapshots.take(basename(path), 'clients')
  return { ...snapshot, close: () => snapshots.close() }
}
