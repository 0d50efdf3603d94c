/** The snapshots of the service, and the one that a request is answered from (`as_of`, CONTRACT 4.6). */
import { join, resolve } from 'node:path'
import { asOfFromId, snapshotId } from '../../../pipeline/contract/calendar.ts'
import { SNAPSHOTS_FOLDER, SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import { ApiError } from '../../http/errors.ts'
import { badRequest, invalid } from '../../http/protocol/query-parameters.ts'
import { attachSnapshots } from './attached.ts'
import type { SnapshotCatalogue } from './catalogue.ts'
import { followPointer, type CurrentSnapshot, type FollowOptions } from './current.ts'
import { openDatabase, type PoolName } from './database.ts'
import type { Snapshot } from './facts.ts'

export interface Snapshots {
  readonly dataDir: string
  readonly catalogue: SnapshotCatalogue
  readonly current: Pick<CurrentSnapshot, 'facts' | 'fault'>
  /**
   * The snapshot of `asOf` (ISO 8601, or an identifier), or the current one; it stays open until it is disposed of. An
   * aborted `signal` ends its queries.
   * @throws {ApiError} 503 without a current one, 400 for an unknown time, 410 for a retracted or pruned one.
   */
  take(asOf: string | undefined, pool: PoolName, signal?: AbortSignal): Promise<Snapshot & Disposable>
  /** Interrupts all queries and closes all snapshots. */
  close(): Promise<void>
}

interface OpenOptions extends FollowOptions {
  readonly dataDir: string
  /** Memory of all open snapshots together, such as `1GB`. */
  readonly memory: string
  readonly catalogue: SnapshotCatalogue
}

export async function openSnapshots({
  dataDir,
  memory,
  catalogue,
  ...options
}: OpenOptions): Promise<Snapshots> {
  const folder = join(resolve(dataDir), SNAPSHOTS_FOLDER)
  const database = await openDatabase({ memory, folder })
  const { log } = options
  const attached = attachSnapshots({ database, folder, log, isRetained: (id) => catalogue.isRetained(id) })
  const current = await followPointer({ dataDir, attached, catalogue, ...options })
  return {
    dataDir,
    catalogue,
    current,
    async take(asOf, pool, signal) {
      const id = asOf === undefined ? current.facts()?.id : retainedAt(catalogue, asOf)
      if (id === undefined) throw noSnapshot(current)
      const held = await attached.hold(id)
      const snapshot = held.over[pool]
      return {
        ...snapshot,
        query: (sql, values) => snapshot.query(sql, values, signal),
        [Symbol.dispose]: () => held[Symbol.dispose](),
      }
    },
    async close() {
      await current.close()
      await attached.settle()
      await database.close()
    },
  }
}

const RETRY_AFTER_SECONDS = 60
const PART_OF_A_SECOND = /\.\d*[1-9]/

/** The identifier of the retained snapshot computed at `asOf`. */
function retainedAt(catalogue: SnapshotCatalogue, asOf: string): string {
  const id = idAt(asOf)
  if (id !== undefined) {
    const refusal = goneSnapshot(catalogue, id)
    if (refusal !== undefined) throw refusal
    if (catalogue.isRetained(id)) return id
  }
  const allowed = `the as_of of a retained snapshot; ${SNAPSHOTS_PATH} lists them`
  throw badRequest([invalid('as_of', asOf, allowed)])
}

/** The identifier of a snapshot computed at this time (ISO 8601), or the text itself if it is an identifier. */
function idAt(asOf: string): string | undefined {
  if (asOfFromId(asOf) !== undefined) return asOf
  // All snapshots were computed at whole seconds.
  return PART_OF_A_SECOND.test(asOf) ? undefined : snapshotId(new Date(asOf))
}

/** The error while no snapshot is served. */
export function noSnapshot({ fault }: Pick<CurrentSnapshot, 'fault'>): ApiError {
  const reason =
    fault() === undefined
      ? 'No snapshot of the dataset has been published yet'
      : 'The snapshot of the dataset cannot be opened; the log of the service has the reason'
  return new ApiError(503, reason, { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } })
}

/** The 410 of a retracted or pruned snapshot, with the reason and the nearest retained one; undefined for others. */
export function goneSnapshot(catalogue: SnapshotCatalogue, id: string): ApiError | undefined {
  const summary = catalogue.find(id)
  if (summary === undefined || catalogue.isRetained(id)) return undefined
  const { state, reason, retracted_at, pruned_at } = summary
  if (reason !== undefined)
    return gone(catalogue, id, `was retracted: ${reason}`, { state, reason, retracted_at })
  const ending = pruned_at === undefined ? 'is not retained' : `was pruned on ${pruned_at}`
  return gone(catalogue, id, ending, { state, ...(pruned_at !== undefined && { pruned_at }) })
}

function gone(catalogue: SnapshotCatalogue, id: string, ending: string, facts: object): ApiError {
  const nearest = nearestTo(id, catalogue.ids())
  const instead = nearest === undefined ? 'None is retained' : `The nearest retained snapshot is ${nearest}`
  const metadata = { snapshot: id, ...facts, nearest_retained: nearest ?? null }
  return new ApiError(410, `Snapshot ${id} ${ending}. ${instead}`, { metadata })
}

/** The identifier nearest in time; of two equally near ones the newer, which comes first. */
function nearestTo(id: string, ids: readonly string[]): string | undefined {
  const distance = (each: string) => Math.abs(timeOf(each) - timeOf(id))
  return ids.toSorted((one, other) => distance(one) - distance(other))[0]
}

function timeOf(id: string): number {
  return asOfFromId(id)?.getTime() ?? Number.NaN
}
