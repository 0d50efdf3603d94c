/** The list of snapshots over HTTP (CONTRACT 4.6). Open data: no key is needed. */
import { daySchema } from '../../../pipeline/contract/calendar.ts'
import { LICENCE } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import type { Handler } from '../../http/call.ts'
import { createBodyCache } from '../../http/protocol/body-cache.ts'
import { encodedTag, preferredEncoding, type Encoding } from '../../http/protocol/encodings.ts'
import {
  badRequest,
  oneOf,
  readParameters,
  type ParameterTable,
  type Values,
} from '../../http/protocol/query-parameters.ts'
import { jsonText, queryString } from '../../http/respond.ts'
import type { SnapshotCatalogue, SnapshotEntry } from './catalogue.ts'
import type { Snapshots } from './choose.ts'
import { LATEST, sendOpen, sha256 } from './open-reply.ts'

/** The parameters of the list. */
export const LIST_PARAMETERS = {
  state: { ...oneOf(['retained', 'all']), default: 'retained' },
  date: { schema: daySchema, allowed: 'a calendar date (UTC) in the form YYYY-MM-DD' },
} as const satisfies ParameterTable
type Wanted = Values<typeof LIST_PARAMETERS>

/** The list in one coding. */
interface Listing {
  /** The tag of the list itself. */
  readonly name: string
  readonly body: Buffer
}

/** Bytes for the list in all its codings, including outdated ones. */
const LISTING_BYTES = 16 * 1024 * 1024

/**
 * Lists snapshots, newest first: the retained ones, with `state=all` every published one, with `date` the one in force
 * on that day. Each has its state; the current and the withdrawn ones are marked.
 */
export function listSnapshots(catalogue: SnapshotCatalogue, { current, retained }: Snapshots): Handler {
  // The list grows every night and needs no key, so it is rebuilt only when it changes.
  const keep = createBodyCache<Listing>(LISTING_BYTES)

  async function listingIn(encoding: Encoding, wanted: Wanted): Promise<Listing> {
    const currentId = current.facts()?.id
    const entries = entriesOf(catalogue, wanted)
    const retracted = retained.retractions()
    const state = JSON.stringify([currentId, entries.map(({ id, state: each }) => [id, each]), retracted])
    return await keep(state, encoding, async () => {
      const data = entries.map((entry) => ({ ...entry, current: entry.id === currentId }))
      const body = Buffer.from(jsonText({ data, total_count: data.length, retracted }))
      return { name: sha256(body), body }
    })
  }

  return async (request, reply) => {
    const { values: wanted, faults } = readParameters(LIST_PARAMETERS, queryString(request))
    if (faults.length > 0) throw badRequest(faults)
    const encoding = preferredEncoding(request)
    const { name, body } = await listingIn(encoding, wanted)
    reply.set('Link', `<${SNAPSHOTS_PATH}/${LATEST}>; rel="latest-version", <${LICENCE.url}>; rel="license"`)
    reply.set('Vary', 'Accept-Encoding')
    sendOpen(request, reply, { etag: encodedTag(name, encoding), body, encoding })
  }
}

function entriesOf(catalogue: SnapshotCatalogue, { state, date }: Wanted): readonly SnapshotEntry[] {
  if (date === undefined) return state === 'all' ? catalogue.listAll() : catalogue.list()
  const inForce = catalogue.listAll().find((entry) => wasInForce(entry, date))
  return inForce === undefined ? [] : [inForce]
}

/** Whether a snapshot was published and not withdrawn by the end of a day; the newest such one was in force. */
function wasInForce({ as_of, retracted_at }: SnapshotEntry, date: string): boolean {
  const isBy = (time: string) => time.slice(0, 'YYYY-MM-DD'.length) <= date
  return isBy(as_of) && (retracted_at === undefined || !isBy(retracted_at))
}
