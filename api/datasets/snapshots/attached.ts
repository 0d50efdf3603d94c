/** The attached snapshots: a file is opened for its first user, and closed after its last. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { readRecord, sizeFault } from '../../../pipeline/contract/snapshot-record.ts'
import type { Log } from '../../process/log.ts'
import type { Database } from './database.ts'
import { readFacts, type SnapshotFacts } from './facts.ts'

/** The use of a snapshot, which stays attached until it is disposed of, once. */
export interface HeldSnapshot extends Disposable {
  readonly facts: SnapshotFacts
}

export interface AttachedSnapshots {
  /** @throws if its file is missing, damaged, not a snapshot, or was written after it was published. */
  hold(id: string): Promise<HeldSnapshot>
  /** Resolves once nothing is being opened or closed: DuckDB must not be closed meanwhile. */
  settle(): Promise<void>
}

interface Dependencies {
  readonly database: Database
  /** The folder of all snapshots. */
  readonly folder: string
  readonly log: Log
}

interface Attached {
  readonly facts: Promise<SnapshotFacts>
  users: number
}

export function attachSnapshots({ database, folder, log }: Dependencies): AttachedSnapshots {
  const attached = new Map<string, Attached>()
  const leaving = new Map<string, Promise<void>>()

  async function open(id: string): Promise<SnapshotFacts> {
    await leaving.get(id)
    refuseDamaged(folder, id)
    await database.attach(id, join(folder, id, SNAPSHOT_FILE))
    try {
      const facts = await readFacts(database.queryOf(id, 'preparation'))
      if (facts.id !== id) throw new Error(`The file of ${id} is the snapshot ${facts.id}`)
      log.info({ snapshot: id, data_through: facts.dataThrough }, 'snapshot opened')
      return facts
    } catch (error) {
      await database.detach(id)
      throw error
    }
  }

  function release(id: string, entry: Attached): void {
    entry.users -= 1
    if (entry.users > 0) return
    attached.delete(id)
    leaving.set(
      id,
      close(id, { database, log }).finally(() => leaving.delete(id)),
    )
  }

  return {
    async hold(id) {
      const entry = attached.get(id) ?? { facts: open(id), users: 0 }
      attached.set(id, entry)
      entry.users += 1
      try {
        return { facts: await entry.facts, [Symbol.dispose]: () => release(id, entry) }
      } catch (error) {
        // The next request tries again to open it.
        if (attached.get(id) === entry) attached.delete(id)
        throw error
      }
    },
    async settle() {
      await Promise.allSettled([...attached.values()].map(({ facts }) => facts))
      await Promise.allSettled(leaving.values())
    },
  }
}

async function close(id: string, { database, log }: Pick<Dependencies, 'database' | 'log'>): Promise<void> {
  try {
    await database.detach(id)
    log.info({ snapshot: id }, 'snapshot closed')
  } catch (error) {
    // All its replies were read, so a failed close is harmless.
    log.error({ snapshot: id, err: error }, 'snapshot cannot be closed')
  }
}

/** @throws if the snapshot's file is not the published one, or its record cannot be read. */
function refuseDamaged(folder: string, id: string): void {
  const published = readRecord(folder, id)?.files.find(({ name }) => name === SNAPSHOT_FILE)
  const fault = published && sizeFault(join(folder, id), published)
  if (fault !== undefined) {
    throw new Error(
      `${SNAPSHOT_FILE} of ${id} ${fault}. Restore it from a backup; npm run nightly -- verify ${id} checks it`,
    )
  }
  const path = join(folder, id, SNAPSHOT_FILE)
  // A program that opened the file to write may have left a WAL, which DuckDB would read too.
  if (existsSync(`${path}.wal`)) {
    throw new Error(
      `${path} was opened to write after it was published. Remove ${path}.wal, which holds the changes, and open ` +
        'published files read-only',
    )
  }
}
