/** The links of a reply: RFC 8288 links, and its permanent address. */
import { LICENCE } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import type { Page, Place, Question } from './question.ts'

/**
 * The address with the same bytes as long as the snapshot is retained: defaults are written out, the snapshot is
 * pinned.
 */
export function pinnedAddress({ snapshot, question, format, hasMark }: Place): string {
  const form = format === 'json' ? [] : ([['format', format]] as const)
  const mark = hasMark === true ? ([['bom', '1']] as const) : []
  return address(question.path, [['as_of', snapshot.asOf], ...question.parameters, ...form, ...mark])
}

/**
 * The `Link` field. Page links pin the snapshot, so that a swap between two pages loses and repeats nothing.
 * @param total the total over all pages; undefined if unknown (HEAD).
 */
export function linkField(place: Place, total: number | undefined): string {
  const { snapshot, question } = place
  const files = `${SNAPSHOTS_PATH}/${snapshot.id}`
  return [
    ...pageLinks(place, total),
    link(LICENCE.url, 'license'),
    link(`${files}/croissant.json`, 'describedby', 'application/json'),
    link(files, 'cite-as'),
    link(address(question.path, question.parameters), 'latest-version'),
  ].join(', ')
}

function pageLinks(place: Place, total: number | undefined): string[] {
  const { page } = place.question
  if (page === undefined) return []
  const to = (target: PageOfList, relation: string) =>
    link(pinnedAddress({ ...place, question: turnTo(place.question, target) }), relation)
  const { limit, offset } = page
  const last = total === undefined ? undefined : lastPage(page, total)
  const links: string[] = []
  if (offset > 0 && total !== 0)
    links.push(to(last && last.offset < offset ? last : pageBefore(page), 'prev'))
  if (last && last.offset > offset) links.push(to({ limit, offset: offset + limit }, 'next'))
  // A list of one page ends with it.
  if (last && offset + last.offset > 0) links.push(to(last, 'last'))
  return links
}

type PageOfList = Pick<Page, 'limit' | 'offset'>

/** The page before this one, shorter at the beginning of the list. */
function pageBefore({ limit, offset }: PageOfList): PageOfList {
  return offset < limit ? { limit: offset, offset: 0 } : { limit, offset: offset - limit }
}

/**
 * The last page that `next` reaches from this one, or from the first if this one is beyond the end; undefined for an
 * empty list.
 */
function lastPage({ limit, offset, maxOffset }: Page, total: number): PageOfList | undefined {
  if (total === 0) return undefined
  const from = offset < total ? offset : 0
  return { limit, offset: from + limit * Math.floor((Math.min(maxOffset, total - 1) - from) / limit) }
}

function turnTo(question: Question, { limit, offset }: PageOfList): Question {
  const values: Readonly<Record<string, number>> = { limit, offset }
  const parameters = question.parameters.map(
    ([name, value]) => [name, String(values[name] ?? value)] as const,
  )
  return { ...question, parameters }
}

function address(path: string, parameters: Question['parameters']): string {
  return `${path}?${new URLSearchParams(parameters.map(([name, value]) => [name, value])).toString()}`
}

function link(target: string, relation: string, type?: string): string {
  return `<${target}>; rel="${relation}"${type === undefined ? '' : `; type="${type}"`}`
}
