/** The snapshot that a request names (`as_of`, CONTRACT 4.6), and the errors if it is not served. */
import { asOfFromId, snapshotId } from '../../../pipeline/contract/calendar.ts'
import { SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import { ApiError } from '../../http/errors.ts'
import { invalidParameter } from '../../http/query-parameters.ts'
import type { Fault, Catalogue } from './catalogue.ts'

const RETRY_AFTER_SECONDS = 60
const PART_OF_A_SECOND = /\.\d*[1-9]/

/**
 * The identifier of the retained snapshot computed at `asOf`, a time (ISO 8601) or an identifier.
 * @throws {ApiError} 400 for an unknown one, 410 for a retracted or pruned one.
 */
export function retainedAt(catalogue: Catalogue, asOf: string): string {
  const id = idAt(asOf)
  if (id !== undefined) {
    refuseGone(catalogue, id)
    if (catalogue.read().ids.includes(id)) return id
  }
  throw invalidParameter('as_of', asOf, `the as_of of a retained snapshot; ${SNAPSHOTS_PATH} lists them`)
}

function idAt(asOf: string): string | undefined {
  if (asOfFromId(asOf) !== undefined) return asOf
  // All snapshots were computed at whole seconds.
  return PART_OF_A_SECOND.test(asOf) ? undefined : snapshotId(new Date(asOf))
}

/** The error while no snapshot is served. */
export function noSnapshot(fault: Fault | undefined): ApiError {
  const reason =
    fault === undefined
      ? 'No snapshot of the dataset has been published yet'
      : 'The snapshot of the dataset cannot be opened; the log of the service has the reason'
  return new ApiError(503, reason, { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } })
}

/** @throws {ApiError} 410 for a retracted or pruned snapshot, with the reason and the nearest retained one. */
export function refuseGone(catalogue: Catalogue, id: string): void {
  const { ids, entries } = catalogue.read()
  const entry = entries.find((each) => each.id === id)
  if (entry === undefined || ids.includes(id)) return
  const { state, reason, retracted_at, pruned_at } = entry
  const pruned = pruned_at === undefined ? 'is not retained' : `was pruned on ${pruned_at}`
  const ending = reason === undefined ? pruned : `was retracted: ${reason}`
  const distance = (each: string) => Math.abs(timeOf(each) - timeOf(id))
  // Of two equally near ones the newer, which comes first.
  const [nearest] = ids.toSorted((one, other) => distance(one) - distance(other))
  const instead = nearest === undefined ? 'None is retained' : `The nearest retained snapshot is ${nearest}`
  const dates = reason === undefined ? { pruned_at } : { reason, retracted_at }
  throw new ApiError(410, `Snapshot ${id} ${ending}. ${instead}`, {
    metadata: { snapshot: id, state, ...dates, nearest_retained: nearest ?? null },
  })
}

function timeOf(id: string): number {
  return asOfFromId(id)?.getTime() ?? Number.NaN
}
