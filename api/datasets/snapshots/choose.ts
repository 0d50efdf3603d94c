import { asOfFromId, snapshotId } from '../../../pipeline/contract/calendar.ts'
import { SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import { ApiError } from '../../http/errors.ts'
import { badRequest, invalid } from '../../http/protocol/query-parameters.ts'
import type { CurrentSnapshot } from './current.ts'
import type { RetainedSnapshots } from './retained.ts'
import type { Snapshot } from './open-snapshot.ts'

/** The snapshots of the service. */
export interface Snapshots {
  readonly current: CurrentSnapshot
  readonly retained: RetainedSnapshots
}

const RETRY_AFTER_SECONDS = 60

/**
 * Calls `work` with the snapshot of `asOf` (ISO 8601), or the current one, and keeps it open meanwhile. Without one,
 * calls it with the error (CONTRACT 4.6): 503 before the first is published or while the only one cannot be opened, 400
 * for an unknown time, 410 for a retracted or pruned one.
 */
export function useSnapshot<Result>(
  { current, retained }: Snapshots,
  asOf: string | undefined,
  work: (snapshot: Snapshot | ApiError) => Promise<Result>,
): Promise<Result> {
  const wanted = asOf === undefined ? undefined : findRetained({ current, retained }, asOf)
  if (wanted instanceof ApiError) return work(wanted)
  if (wanted !== undefined) return retained.use(wanted, work)
  return current.use((snapshot) => work(snapshot ?? noSnapshot(current)))
}

/** The identifier of the snapshot computed at `asOf`, or why there is none; undefined for the current one. */
function findRetained({ current, retained }: Snapshots, asOf: string): string | ApiError | undefined {
  const id = idAt(asOf)
  if (id === undefined) return unknownSnapshot(asOf)
  const refusal = goneSnapshot(retained, id)
  if (refusal !== undefined) return refusal
  if (id === current.facts()?.id) return undefined
  return retained.ids().includes(id) ? id : unknownSnapshot(asOf)
}

const PART_OF_A_SECOND = /\.\d*[1-9]/

/** The identifier of a snapshot computed at this time (ISO 8601), or the text itself if it is an identifier. */
function idAt(asOf: string): string | undefined {
  if (asOfFromId(asOf) !== undefined) return asOf
  // All snapshots were computed at whole seconds.
  return PART_OF_A_SECOND.test(asOf) ? undefined : snapshotId(new Date(asOf))
}

/** The error while no snapshot is served. */
export function noSnapshot(current: CurrentSnapshot): ApiError {
  const reason =
    current.fault() !== undefined
      ? 'The snapshot of the dataset cannot be opened; the log of the service has the reason'
      : 'No snapshot of the dataset has been published yet'
  return new ApiError(503, reason, {
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
  })
}

/** The 410 of a retracted or pruned snapshot, with the reason and the nearest retained one; undefined for others. */
export function goneSnapshot(retained: RetainedSnapshots, id: string): ApiError | undefined {
  if (retained.ids().includes(id)) return undefined
  const retraction = retained.retraction(id)
  if (retraction !== undefined) {
    const { reason, retracted_at } = retraction
    return gone(retained, id, `was retracted: ${reason}`, { state: 'retracted', reason, retracted_at })
  }
  const record = retained.record(id)
  if (record === undefined) return undefined
  const { pruned_at } = record
  const ending = pruned_at === undefined ? 'is not retained' : `was pruned on ${pruned_at}`
  return gone(retained, id, ending, { state: 'pruned', ...(pruned_at && { pruned_at }) })
}

function gone(
  retained: RetainedSnapshots,
  id: string,
  ending: string,
  facts: Readonly<Record<string, string>>,
): ApiError {
  const nearest = nearestTo(id, retained.ids())
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

function unknownSnapshot(asOf: string): ApiError {
  const allowed = `the as_of of a retained snapshot; ${SNAPSHOTS_PATH} lists them`
  return badRequest([invalid('as_of', asOf, allowed)])
}
