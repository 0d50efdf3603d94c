/** GET /feed.xml (CONTRACT 4.6): an Atom feed with an entry per snapshot and per retraction, with its reason. */
import { COMPARABILITY_NOTE, LICENCE } from '../../pipeline/contract/dataset.ts'
import type { SnapshotEntry } from '../datasets/snapshots/catalogue.ts'
import type { Snapshots } from '../datasets/snapshots/current.ts'
import { sendOpen } from '../datasets/snapshots/files.ts'
import type { Handler } from '../http/call.ts'
import { FEED_PATH } from '../paths.ts'
import { markup } from './html.ts'

/** Maximum entries; the list of snapshots has the older ones. */
const ENTRIES = 100

/**
 * Serves the feed. Entries keep their ids, which begin with `origin`, at whatever address it is read; its links begin
 * with the public one, or the host of the request, since not every reader resolves relative ones.
 */
export function feed({ catalogue }: Snapshots, origin: string, publicUrl: string | undefined): Handler {
  return async (request, reply) => {
    const { host } = request.headers
    // HTTP/1.0 may name no host.
    const at = publicUrl ?? (host === undefined ? origin : `${request.protocol}://${host}`)
    const entries = catalogue
      .read()
      .entries.flatMap(elementsOf)
      .toSorted((one, other) => other.updated.localeCompare(one.updated))
      .slice(0, ENTRIES)
    const elements = entries.map(
      ({ path, page, title, updated, author, summary }) => markup`
<entry>
  <id>${origin}${path}</id><title>${title}</title><updated>${updated}</updated>
  <author><name>${author}</name></author>
  <link rel="alternate" type="text/html" href="${at}${page}"/>
  <summary>${summary}</summary>
</entry>`,
    )
    const { html: text } = markup`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>${origin}${FEED_PATH}</id><title>App rankings</title>
<updated>${entries[0]?.updated ?? '1970-01-01T00:00:00Z'}</updated>
<rights>${LICENCE.name} (${LICENCE.url}). ${COMPARABILITY_NOTE}</rights>
<link rel="self" type="application/atom+xml" href="${at}${FEED_PATH}"/>
<link rel="alternate" type="text/html" href="${at}/"/>${elements}
</feed>
`
    await sendOpen(request, reply, 'application/atom+xml; charset=utf-8', text)
  }
}

/** The entry of a snapshot and, if it was retracted, the one of its retraction. */
function elementsOf(entry: SnapshotEntry) {
  const { as_of, url, state, retracted_at = as_of, reason = '' } = entry
  const restated =
    entry.days_restated > 0 ? ` Days with new figures: ${entry.days_restated}; see restatements.csv.` : ''
  const snapshot = {
    page: `/?as_of=${as_of}`,
    author: entry.publisher,
    title: `Snapshot of ${as_of}`,
    path: url,
    updated: as_of,
    summary: `Data through ${entry.data_through}.${restated}`,
  }
  if (state !== 'retracted') return [snapshot]
  const title = `${snapshot.title} withdrawn`
  return [snapshot, { ...snapshot, title, path: `${url}#retraction`, updated: retracted_at, summary: reason }]
}
