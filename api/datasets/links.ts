/** The `Link` field of a reply with rows (RFC 8288): what CONTRACT 4.6 names, small enough for any proxy. */
import { LICENCE } from '../../pipeline/contract/dataset.ts'
import { CROISSANT_FILE, SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import type { Format } from './formats.ts'

/** A part of a list. */
export interface Page {
  readonly limit: number
  readonly offset: number
  /** The largest allowed offset. */
  readonly maxOffset: number
}

/** What a representation of rows is linked by. */
interface Linked {
  readonly snapshot: { readonly id: string }
  readonly rows: {
    readonly path: string
    readonly parameters: readonly (readonly [name: string, value: string])[]
    readonly page?: Page
  }
  readonly format: Format
}

/**
 * The `Link` field. Page links pin the snapshot, so that a swap between two pages loses and repeats nothing.
 * @param total the total over all pages; without it there are no links to pages.
 */
export function linkField(representation: Linked, total?: number): string {
  const { snapshot, rows } = representation
  const pages = rows.page === undefined || total === undefined ? {} : pagesAround(rows.page, total)
  const targets = Object.entries(pages).map(([relation, page]) => [
    relation,
    addressOf(representation, { ...page }),
  ])
  const folder = `${SNAPSHOTS_PATH}/${snapshot.id}`
  return [
    ...targets,
    ['license', LICENCE.url],
    ['describedby', `${folder}/${CROISSANT_FILE}`],
    ['cite-as', folder],
    ['latest-version', `${SNAPSHOTS_PATH}/latest`],
  ]
    .map(([relation, target]) => `<${target}>; rel="${relation}"`)
    .join(', ')
}

type Position = Pick<Page, 'limit' | 'offset'>

/** The pages that exist around this one, by their relation: none is empty. */
function pagesAround(page: Page, total: number): Readonly<Record<string, Position>> {
  const { limit, offset } = page
  if (total === 0) return {}
  const last = lastPage(page, total)
  // Shorter at the beginning of the list.
  const before = offset < limit ? { limit: offset, offset: 0 } : { limit, offset: offset - limit }
  return {
    ...(offset > 0 && { prev: last.offset < offset ? last : before }),
    ...(last.offset > offset && { next: { limit, offset: offset + limit } }),
    // A list of one page ends with it.
    ...(offset + last.offset > 0 && { last }),
  }
}

/** The last page that `next` reaches from this one, or from the first if this one is beyond the end. */
function lastPage({ limit, offset, maxOffset }: Page, total: number): Position {
  const from = offset < total ? offset : 0
  return { limit, offset: from + limit * Math.floor((Math.min(maxOffset, total - 1) - from) / limit) }
}

/** The address of a page in this snapshot, with defaults written out. */
function addressOf({ snapshot, rows, format }: Linked, position: Readonly<Record<string, number>>): string {
  const query = new URLSearchParams({ as_of: snapshot.id })
  for (const [name, value] of rows.parameters) query.append(name, String(position[name] ?? value))
  if (format !== 'json') query.append('format', format)
  return `${rows.path}?${query.toString().replaceAll('%2C', ',')}`
}
