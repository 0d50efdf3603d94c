/** The snapshot that a request names (`as_of`, CONTRACT 4.6), and the errors if it is not served. */
import { asOfFromId, snapshotId } from '../../../pipeline/contract/calendar.ts'
import { SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import { ApiError } from '../../http/errors.ts'
import { badRequest, invalid } from '../../http/query-parameters.ts'
import type { Fault, SnapshotCatalogue } from './catalogue.ts'

const RETRY_AFTER_SECONDS = 60
const PART_OF_A_SECOND = /\.\d*[1-9]/

/**
 * The identifier of the retained snapshot computed at `asOf`, a time (ISO 8601) or an identifier.
 * @throws {ApiError} 400 for an unknown one, 410 for a retracted or pruned one.
 */
export function retainedAt(catalogue: SnapshotCatalogue, asOf: string): string {
  const id = idAt(asOf)
  if (id !== undefined) {
    refuseGone(catalogue, id)
    if (catalogue.isRetained(id)) return id
  }
  const allowed = `the as_of of a retained snapshot; ${SNAPSHOTS_PATH} lists them`
  throw badRequest([invalid('as_of', asOf, allowed)])
}

function idAt(asOf: string): string | undefined {
  if (asOfFromId(asOf) !== undefined) return asOf
  // All snapshots were computed at whole seconds.
  return PART_OF_A_SECOND.test(asOf) ? undefined : snapshotId(new Date(asOf))
}

/** The error while no snapshot is served. */
export function noSnapshot({ fault }: { readonly fault: () => Fault | undefined }): ApiError {
  const reason =
    fault() === undefined
      ? 'No snapshot of the dataset has been published yet'
      : 'The snapshot of the dataset cannot be opened; the log of the service has the reason'
  return new ApiError(503, reason, { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } })
}

/** @throws {ApiError} 410 for a retracted or pruned snapshot, with the reason and the nearest retained one. */
export function refuseGone(catalogue: SnapshotCatalogue, id: string): void {
  const entry = catalogue.find(id)
  if (entry === undefined || catalogue.isRetained(id)) return
  const { state, reason, retracted_at, pruned_at } = entry
  const pruned = pruned_at === undefined ? 'is not retained' : `was pruned on ${pruned_at}`
  const ending = reason === undefined ? pruned : `was retracted: ${reason}`
  const nearest = nearestTo(id, catalogue.ids())
  const instead = nearest === undefined ? 'None is retained' : `The nearest retained snapshot is ${nearest}`
  const dates = reason === undefined ? { pruned_at } : { reason, retracted_at }
  throw new ApiError(410, `Snapshot ${id} ${ending}. ${instead}`, {
    metadata: { snapshot: id, state, ...dates, nearest_retained: nearest ?? null },
  })
}

/** The identifier nearest in time; of two equally near ones the newer, which comes first. */
function nearestTo(id: string, ids: readonly string[]): string | undefined {
  const distance = (each: string) => Math.abs(timeOf(each) - timeOf(id))
  return ids.toSorted((one, other) => distance(one) - distance(other))[0]
}

function timeOf(id: string): number {
  return asOfFromId(id)?.getTime() ?? Number.NaN
}
