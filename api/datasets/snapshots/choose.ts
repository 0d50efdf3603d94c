import { snapshotId } from '../../../pipeline/contract/calendar.ts'
import { SNAPSHOTS_PATH, type Retraction } from '../../../pipeline/contract/files.ts'
import { ApiError } from '../../http/errors.ts'
import { badRequest, invalid } from '../../http/protocol/query-parameters.ts'
import type { CurrentSnapshot } from './current.ts'
import type { RetainedSnapshots } from './retained.ts'
import type { Snapshot } from './open-snapshot.ts'

/** The snapshots a request may ask for. */
export interface Snapshots {
  readonly current: CurrentSnapshot
  readonly retained: RetainedSnapshots
}

const RETRY_AFTER_SECONDS = 60

/**
 * Gives `work` the snapshot computed at `asOf` (ISO 8601), the current one without it, and keeps it open meanwhile;
 * or the refusal where there is none (CONTRACT 4.6): 503 before the first is published or while the only one cannot be
 * opened, 400 for an unknown time, 410 for a retracted one.
 */
export function useSnapshot<Result>(
  { current, retained }: Snapshots,
  asOf: string | undefined,
  work: (snapshot: Snapshot | ApiError) => Promise<Result>,
): Promise<Result> {
  const ofCurrent = () => current.use((snapshot) => work(snapshot ?? noSnapshot(current)))
  if (asOf === undefined) return ofCurrent()
  const id = idAt(asOf)
  if (id === undefined) return work(unknownSnapshot(asOf))
  if (id === current.facts()?.id && retained.retraction(id) === undefined) return ofCurrent()
  const retraction = retained.retraction(id)
  if (retraction !== undefined) return work(goneSnapshot(retraction))
  return retained.ids().includes(id) ? retained.use(id, work) : work(unknownSnapshot(asOf))
}

const PART_OF_A_SECOND = /\.\d*[1-9]/

/** The identifier of a snapshot computed at this time, ISO 8601; all of them were computed at whole seconds. */
function idAt(asOf: string): string | undefined {
  return PART_OF_A_SECOND.test(asOf) ? undefined : snapshotId(new Date(asOf))
}

function noSnapshot(current: CurrentSnapshot): ApiError {
  const reason = current.isFaulty()
    ? 'The snapshot of the dataset cannot be opened; the log of the service says why'
    : 'No snapshot of the dataset has been published yet'
  return new ApiError(503, reason, {
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
  })
}

/** The refusal of a snapshot that was withdrawn; it tells why. */
export function goneSnapshot({ id, reason, retracted_at }: Retraction): ApiError {
  return new ApiError(410, `Snapshot ${id} was retracted: ${reason}`, {
    metadata: { snapshot: id, reason, retracted_at },
  })
}

function unknownSnapshot(asOf: string): ApiError {
  const allowed = `the as_of of a retained snapshot; ${SNAPSHOTS_PATH} lists them`
  return badRequest([invalid('as_of', asOf, allowed)])
}
