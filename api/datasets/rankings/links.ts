/** Where a rankings reply leads on to: RFC 8288 links, and the address under which it stays the same. */
import { LICENCE } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import { DOCUMENT_PATH, RANKINGS_PATH, STATUS_PATH } from '../../paths.ts'
import { FORMAT_NAMES, FORMATS, type Format } from '../formats/formats.ts'
import { MAX_OFFSET } from './parameters.ts'
import type { RankingsQuery } from './query.ts'
import type { SnapshotFacts } from '../snapshots/open-snapshot.ts'

/** A reply's place in the dataset. */
export interface Place {
  readonly snapshot: SnapshotFacts
  readonly query: RankingsQuery
  readonly format: Format
}

/**
 * The address that gives the same bytes for as long as the snapshot is retained: every default is written out,
 * the snapshot pinned.
 */
export function pinnedAddress({ snapshot, query, format }: Place): string {
  return address({
    as_of: snapshot.asOf,
    ...parametersOf(query),
    ...(format === 'json' ? {} : { format }),
  })
}

/**
 * The `Link` field. Page links pin the snapshot, so that a swap between two pages loses and repeats nothing.
 * @param rows how many rows the reply has; undefined where that is not known (HEAD).
 */
export function linkField(place: Place, rows: number | undefined): string {
  const { snapshot, query, format } = place
  const files = `${SNAPSHOTS_PATH}/${snapshot.id}`
  return [
    ...pageLinks(place, rows),
    link(LICENCE.url, 'license'),
    link(`${files}/datapackage.json`, 'describedby', 'application/json'),
    link(files, 'cite-as'),
    link(SNAPSHOTS_PATH, 'version-history'),
    link(address(parametersOf(query)), 'latest-version'),
    ...FORMAT_NAMES.filter((name) => name !== format).map((name) =>
      link(pinnedAddress({ ...place, format: name }), 'alternate', FORMATS[name].mediaType),
    ),
    link(DOCUMENT_PATH, 'service-desc', 'application/json'),
    link(STATUS_PATH, 'status'),
  ].join(', ')
}

function pageLinks(place: Place, rows: number | undefined): string[] {
  const { limit, offset } = place.query
  const to = (page: Pick<RankingsQuery, 'limit' | 'offset'>, relation: string) =>
    link(pinnedAddress({ ...place, query: { ...place.query, ...page } }), relation)
  const links: string[] = []
  if (offset > 0) links.push(to({ limit, offset: 0 }, 'first'), to(pageBefore(place.query), 'prev'))
  if (rows === limit && offset + limit <= MAX_OFFSET) {
    links.push(to({ limit, offset: offset + limit }, 'next'))
  }
  return links
}

/** The page that ends where this one begins: shorter, where there are fewer ranks before it. */
export function pageBefore({ limit, offset }: RankingsQuery): Pick<RankingsQuery, 'limit' | 'offset'> {
  return offset < limit ? { limit: offset, offset: 0 } : { limit, offset: offset - limit }
}

function parametersOf(query: RankingsQuery): Readonly<Record<string, string>> {
  const { sort, category, subcategory, start, end, limit, offset } = query
  return {
    sort,
    ...(category === null ? {} : { category }),
    ...(subcategory === null ? {} : { subcategory }),
    start_date: start,
    end_date: end,
    limit: String(limit),
    offset: String(offset),
  }
}

function address(parameters: Readonly<Record<string, string>>): string {
  return `${RANKINGS_PATH}?${new URLSearchParams(parameters).toString()}`
}

function link(target: string, relation: string, type?: string): string {
  return `<${target}>; rel="${relation}"${type === undefined ? '' : `; type="${type}"`}`
}
