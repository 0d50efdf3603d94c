/** GET /feed.xml (CONTRACT 4.6): an Atom feed with an entry per snapshot and per retraction, with its reason. */
import type { Request } from 'express'
import { COMPARABILITY_NOTE, LICENCE } from '../../../pipeline/contract/dataset.ts'
import type { Handler } from '../../http/call.ts'
import { FEED_PATH } from '../../paths.ts'
import type { SnapshotEntry } from './catalogue.ts'
import type { Snapshots } from './current.ts'
import { sendOpen } from './files.ts'

/** Maximum entries; the list of snapshots has the older ones. */
const ENTRIES = 100

/** Serves the feed; `ids` is a constant origin, so that an entry keeps its id, `origin` the address of the request. */
export function feed({ catalogue }: Snapshots, ids: string, origin: (request: Request) => string): Handler {
  return async (request, reply) => {
    const [id, at] = [escapeXml(ids), escapeXml(origin(request))]
    const entries = catalogue
      .read()
      .entries.filter(({ state }) => state !== 'pruned')
      .flatMap(entriesOf)
      .toSorted((one, other) => other.updated.localeCompare(one.updated))
      .slice(0, ENTRIES)
    const elements = entries.map(
      ({ path, page, title, updated, author, summary }) => `
<entry>
  <id>${id}${path}</id><title>${title}</title><updated>${updated}</updated>
  <author><name>${escapeXml(author)}</name></author>
  <link rel="alternate" type="text/html" href="${at}${page}"/>
  <summary>${escapeXml(summary)}</summary>
</entry>`,
    )
    const text = `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>${id}${FEED_PATH}</id><title>App rankings</title>
<updated>${entries[0]?.updated ?? '1970-01-01T00:00:00Z'}</updated>
<rights>${escapeXml(`${LICENCE.name} (${LICENCE.url}). ${COMPARABILITY_NOTE}`)}</rights>
<link rel="self" type="application/atom+xml" href="${at}${FEED_PATH}"/>
<link rel="alternate" type="text/html" href="${at}/"/>${elements.join('')}
</feed>
`
    await sendOpen(request, reply, 'application/atom+xml; charset=utf-8', text)
  }
}

function entriesOf({ as_of, url, publisher, data_through, days_restated, ...rest }: SnapshotEntry) {
  const restated = days_restated > 0 ? ` Days with new figures: ${days_restated}; see restatements.csv.` : ''
  const shared = { page: `/?as_of=${as_of}`, author: publisher }
  const published = { ...shared, path: url, title: `Snapshot of ${as_of}`, updated: as_of }
  const summary = `Data through ${data_through}.${restated}`
  if (rest.state !== 'retracted') return [{ ...published, summary }]
  const { retracted_at = as_of, reason = '' } = rest
  const title = `${published.title} withdrawn`
  return [{ ...shared, path: `${url}#retraction`, title, updated: retracted_at, summary: reason }]
}

/** Escapes a text of an operator, without the characters that XML forbids. */
function escapeXml(text: string): string {
  const allowed = text.replaceAll(/(?![\t\n])\p{Cc}/gu, '')
  return allowed.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
