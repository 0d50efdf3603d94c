/** The attached snapshots: a file is opened on demand, and closed once nobody uses it and it has to make room. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { readRecord, sizeFault } from '../../../pipeline/contract/snapshot-record.ts'
import type { Log } from '../../process/log.ts'
import type { Database, PoolName } from './database.ts'
import { readFacts, type Snapshot } from './facts.ts'

/** A snapshot in use, over each pool of connections; it stays attached until it is disposed of, once. */
export interface HeldSnapshot extends Disposable {
  readonly over: SnapshotByPool
}

type SnapshotByPool = Readonly<Record<PoolName, Snapshot>>

export interface AttachedSnapshots {
  /** @throws if its file is missing, damaged, not a snapshot, or was written after it was published. */
  hold(id: string): Promise<HeldSnapshot>
  /** Closes a snapshot as soon as nobody uses it. */
  retire(id: string): void
  /** Resolves once nothing is being opened or closed: DuckDB must not be closed meanwhile. */
  settle(): Promise<void>
}

interface Dependencies {
  readonly database: Database
  /** The folder of all snapshots. */
  readonly folder: string
  readonly isRetained: (id: string) => boolean
  readonly log: Log
}

/** Number of snapshots that stay attached without use. */
const UNUSED_AT_MOST = 4

interface Attached {
  readonly opened: Promise<SnapshotByPool>
  users: number
  isRetired: boolean
}

/**
 * Opens a snapshot after `before`.
 * @throws if the file is missing, damaged or not this snapshot.
 */
async function open(
  id: string,
  { database, folder, log }: Dependencies,
  before: Promise<void> | undefined,
): Promise<SnapshotByPool> {
  await before
  refuseDamaged(folder, id)
  await database.attach(id, join(folder, id, SNAPSHOT_FILE))
  try {
    const facts = await readFacts(database.queryOf(id, 'preparation'))
    if (facts.id !== id) throw new Error(`The file of ${id} is the snapshot ${facts.id}`)
    log.info({ snapshot: id, data_through: facts.dataThrough }, 'snapshot opened')
    const over = (pool: PoolName) => ({ ...facts, query: database.queryOf(id, pool) })
    return { clients: over('clients'), pages: over('pages'), preparation: over('preparation') }
  } catch (error) {
    await database.detach(id)
    throw error
  }
}

async function close(id: string, { database, log }: Dependencies): Promise<void> {
  try {
    await database.detach(id)
    log.info({ snapshot: id }, 'snapshot closed')
  } catch (error) {
    // All its replies were read, so a failed close is harmless.
    log.error({ snapshot: id, err: error }, 'snapshot cannot be closed')
  }
}

export function attachSnapshots(dependencies: Dependencies): AttachedSnapshots {
  const { isRetained } = dependencies
  const attached = new Map<string, Attached>()
  /** The attached ones without users, the least recently used first. */
  const unused = new Set<string>()
  const leaving = new Map<string, Promise<void>>()

  function detach(id: string): void {
    unused.delete(id)
    attached.delete(id)
    leaving.set(
      id,
      close(id, dependencies).finally(() => leaving.delete(id)),
    )
  }

  function giveBack(id: string, entry: Attached): void {
    entry.users -= 1
    if (entry.users > 0) return
    unused.add(id)
    if (entry.isRetired) detach(id)
    for (const each of unused) {
      // Removed files take space on the disk until they are closed.
      if (unused.size > UNUSED_AT_MOST || !isRetained(each)) detach(each)
    }
  }

  return {
    retire(id) {
      const entry = attached.get(id)
      if (entry !== undefined) entry.isRetired = true
      if (unused.has(id)) detach(id)
    },
    async settle() {
      const opening = [...attached.values()].map(({ opened }) => opened)
      await Promise.allSettled([...opening, ...leaving.values()])
    },
    async hold(id) {
      const opened = attached.get(id)?.opened ?? open(id, dependencies, leaving.get(id))
      const entry = attached.get(id) ?? { opened, users: 0, isRetired: false }
      attached.set(id, entry)
      entry.users += 1
      unused.delete(id)
      try {
        const over = await entry.opened
        return { over, [Symbol.dispose]: () => giveBack(id, entry) }
      } catch (error) {
        // The next request tries again to open it.
        if (attached.get(id) === entry) attached.delete(id)
        throw error
      }
    },
  }
}

/** @throws if the snapshot's file is not the published one, or its record cannot be read. */
function refuseDamaged(folder: string, id: string): void {
  const record = readRecord(folder, id)
  const published = record?.files.find(({ name }) => name === SNAPSHOT_FILE)
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
