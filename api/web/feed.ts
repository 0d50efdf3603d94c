/** GET /feed.xml (CONTRACT 4.6): an Atom feed with an entry per snapshot, per restatement and per retraction. */
import { createHash } from 'node:crypto'
import type { Request } from 'express'
import { COMPARABILITY_NOTE, LICENCE } from '../../pipeline/contract/dataset.ts'
import { SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import type { Retraction } from '../../pipeline/contract/snapshot-record.ts'
import type { Handler } from '../http/call.ts'
import type { SnapshotCatalogue, SnapshotEntry } from '../datasets/snapshots/catalogue.ts'
import { isNotModified } from '../http/protocol/conditional.ts'
import { FEED_PATH, METHOD_PATH } from '../paths.ts'
import { sendBody } from '../http/respond.ts'
import { html, type Html } from './html.ts'
import { counted } from './numbers.ts'

/** Maximum entries; the list of snapshots has the older ones. */
const ENTRIES = 100

interface Entry {
  readonly updated: string
  readonly element: Html
}

/** The origins of an entry's id, which is permanent, and of its links, which must work. */
interface Origins {
  readonly id: string
  readonly link: string
}

/** Renders the feed; `origin` is the request's address, `idOrigin` is constant. */
export function feed(
  catalogue: SnapshotCatalogue,
  idOrigin: string,
  origin: (request: Request) => string,
): Handler {
  return (request, reply) => {
    const at = origin(request)
    const origins = { id: idOrigin, link: at }
    const snapshots = catalogue.list().slice(0, ENTRIES)
    const retractions = catalogue.retractions()
    const entries = [
      ...retractions.map((retraction) => retractionEntry(retraction, origins)),
      ...snapshots.flatMap((snapshot) => entriesOf(snapshot, origins)),
    ].toSorted((one, other) => other.updated.localeCompare(one.updated))
    const document = html`<feed xmlns="http://www.w3.org/2005/Atom">
      <id>${idOrigin}${FEED_PATH}</id>
      <title>App rankings</title>
      <subtitle>Every published snapshot, with the days it restated</subtitle>
      <rights>${LICENCE.name} (${LICENCE.url}). ${COMPARABILITY_NOTE}</rights>
      <link rel="self" type="application/atom+xml" href="${at}${FEED_PATH}" />
      <link rel="alternate" type="text/html" href="${at}/" />
      <link rel="related" type="text/html" title="Method" href="${at}${METHOD_PATH}" />
      <updated>${lastChange(entries, retractions)}</updated>
      ${entries.slice(0, ENTRIES).map(({ element }) => element)}
    </feed> `
    const text = `<?xml version="1.0" encoding="utf-8"?>\n${document.html}`
    const etag = `"${createHash('sha256').update(text).digest('hex')}"`
    reply.set({ ETag: etag, 'Cache-Control': 'public, max-age=300, must-revalidate' })
    if (isNotModified(request.headers, { etag })) reply.status(304).end()
    else sendBody(reply, 200, 'application/atom+xml; charset=utf-8', text)
  }
}

/** The time of the newest entry, including ones that a retraction removed: the time never decreases. */
function lastChange(entries: readonly Entry[], retractions: readonly Retraction[]): string {
  const times = [...entries.map(({ updated }) => updated), ...retractions.map(({ as_of }) => as_of)]
  return times.toSorted().at(-1) ?? '1970-01-01T00:00:00Z'
}

/** An entry links people to the page of its snapshot, and programs to its description. */
function links(asOf: string, url: string, { link }: Origins): Html {
  return html`<link rel="alternate" type="text/html" href="${link}/?as_of=${asOf}" />
    <link rel="related" type="application/json" href="${link}${url}" />`
}

function retractionEntry({ id, as_of, reason, retracted_at }: Retraction, origins: Origins): Entry {
  const url = `${SNAPSHOTS_PATH}/${id}`
  const element = html`<entry>
    <id>${origins.id}${url}#retraction</id>
    <title>Snapshot of ${as_of} withdrawn</title>
    <updated>${retracted_at}</updated>
    <author><name>App rankings</name></author>
    ${links(as_of, url, origins)}
    <summary>${reason}. Use ${origins.link}${SNAPSHOTS_PATH}/latest instead.</summary>
  </entry> `
  return { updated: retracted_at, element }
}

/** The entries of a snapshot: its days and, if there are any, its restatements. */
function entriesOf(snapshot: SnapshotEntry, origins: Origins): Entry[] {
  const { as_of, data_through, days_restated } = snapshot
  const published = feedEntry(snapshot, origins, {
    id: '',
    title: `Snapshot of ${as_of}`,
    summary: `Data through ${data_through}.`,
  })
  if (days_restated === 0) return [published]
  const restated = feedEntry(snapshot, origins, {
    id: '#restatements',
    title: `${counted(days_restated, 'day')} restated by the snapshot of ${as_of}`,
    summary: `New figures for ${counted(days_restated, 'day')} that had been published; see restatements.csv.`,
  })
  return [restated, published]
}

function feedEntry(
  { as_of, url, publisher }: SnapshotEntry,
  origins: Origins,
  { id, title, summary }: { readonly id: string; readonly title: string; readonly summary: string },
): Entry {
  const element = html`<entry>
    <id>${origins.id}${url}${id}</id>
    <title>${title}</title>
    <updated>${as_of}</updated>
    <author><name>${publisher}</name></author>
    ${links(as_of, url, origins)}
    <summary>${summary}</summary>
  </entry> `
  return { updated: as_of, element }
}
