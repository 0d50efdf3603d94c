/** The list of snapshots, and one of them, over HTTP (CONTRACT 4.6). Open data: no key is needed. */
import { daySchema } from '../../../pipeline/contract/calendar.ts'
import { LICENCE } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import type { Handler } from '../../http/call.ts'
import {
  badRequest,
  oneOf,
  readParameters,
  wholeNumber,
  type ParameterTable,
  type Values,
} from '../../http/query-parameters.ts'
import { jsonText, queryString } from '../../http/respond.ts'
import type { SnapshotCatalogue, SnapshotEntry } from './catalogue.ts'
import type { Snapshots } from './current.ts'
import { findRetained, LATEST, pathPart, redirectToLatest, sendOpen } from './files.ts'

const JSON_TYPE = 'application/json; charset=utf-8'
const LICENCE_LINK = `<${LICENCE.url}>; rel="license"`

/** The parameters of the list. */
export const LIST_PARAMETERS = {
  state: {
    ...oneOf(
      ['retained', 'all'],
      'The retained ones, or all that were ever published: records of pruned or retracted ones are permanent.',
    ),
    default: 'retained',
  },
  date: {
    schema: daySchema.describe('Only the one in force on this day (UTC), retained or not.'),
    allowed: 'a calendar date (UTC) in the form YYYY-MM-DD',
  },
  limit: wholeNumber(1, 100, 50, 'Snapshots of the page.'),
  offset: wholeNumber(0, 100_000, 0, 'Snapshots to skip.'),
} as const satisfies ParameterTable
type ListRequest = Values<typeof LIST_PARAMETERS>

/**
 * Lists snapshots, newest first: the retained ones, with `state=all` every published one, with `date` the one in force
 * on that day. Each has its state; the current and the withdrawn ones are marked.
 */
export function listSnapshots({ catalogue, current }: Snapshots): Handler {
  return async (request, reply) => {
    const { values, faults } = readParameters(LIST_PARAMETERS, queryString(request))
    if (faults.length > 0) throw badRequest(faults)
    const asked: ListRequest = values
    const { limit = LIST_PARAMETERS.limit.default, offset = LIST_PARAMETERS.offset.default } = asked
    const entries = entriesOf(catalogue, asked)
    const to = (start: number, relation: string) =>
      `<${SNAPSHOTS_PATH}?state=${asked.state ?? 'retained'}&limit=${limit}&offset=${start}>; rel="${relation}"`
    reply.set(
      'Link',
      [
        ...(offset > 0 ? [to(Math.max(0, offset - limit), 'prev')] : []),
        ...(offset + limit < entries.length ? [to(offset + limit, 'next')] : []),
        `<${SNAPSHOTS_PATH}/${LATEST}>; rel="latest-version"`,
        LICENCE_LINK,
      ].join(', '),
    )
    const page = entries.slice(offset, offset + limit)
    const data = page.map((entry) => ({ ...entry, current: entry.id === current.facts()?.id }))
    const body = { data, total_count: entries.length, retracted: catalogue.retractions() }
    await sendOpen(request, reply, JSON_TYPE, jsonText(body))
  }
}

/** Describes one snapshot with its files; `latest` is the current one. */
export function showSnapshot({ catalogue, current }: Snapshots): Handler {
  return async (request, reply) => {
    const id = pathPart(request, 'id')
    if (id === LATEST) return redirectToLatest(reply, current)
    const entry = findRetained(catalogue, id)
    reply.set('Link', `${LICENCE_LINK}, <${SNAPSHOTS_PATH}>; rel="version-history"`)
    const body = { data: { ...entry, current: id === current.facts()?.id } }
    await sendOpen(request, reply, JSON_TYPE, jsonText(body))
  }
}

function entriesOf(catalogue: SnapshotCatalogue, { state, date }: ListRequest): readonly SnapshotEntry[] {
  if (date === undefined) return state === 'all' ? catalogue.listAll() : catalogue.list()
  return catalogue
    .listAll()
    .filter((entry) => wasInForce(entry, date))
    .slice(0, 1)
}

/** Whether a snapshot was published and not withdrawn by the end of a day; the newest such one was in force. */
function wasInForce({ as_of, retracted_at }: SnapshotEntry, date: string): boolean {
  const isBy = (time: string) => time.slice(0, 'YYYY-MM-DD'.length) <= date
  return isBy(as_of) && (retracted_at === undefined || !isBy(retracted_at))
}
