/**
 * The routes at the origin, for people (CONTRACT 4.6). Pages and files of a snapshot are rendered once for concurrent
 * requests, then cached.
 */
import { createHash } from 'node:crypto'
import { SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import type { Snapshots } from '../datasets/snapshots/current.ts'
import type { Snapshot } from '../datasets/snapshots/facts.ts'
import { sendEncoded } from '../datasets/snapshots/files.ts'
import { isStale } from '../datasets/status.ts'
import { clientDisconnected, queryString, type Clock, type Handler } from '../http/call.ts'
import { createBodyCache, ENCODINGS, preferredEncoding, type Encoding } from '../http/encodings.ts'
import { readParameters, type Given, type ParameterTable } from '../http/query-parameters.ts'
import type { Route } from '../http/route.ts'
import { APPS_PATH, FEED_PATH, METHOD_PATH } from '../paths.ts'
import type { CronSchedule } from '../process/cron-schedule.ts'
import { appView, historyFile } from './app-page.ts'
import { assetRoutes } from './assets.ts'
import { methodView, type View, type ViewContext } from './document.ts'
import { feed } from './feed.ts'
import { DOCUMENT_HEADERS, HTML } from './html.ts'
import { listFile } from './list-files.ts'
import { listView } from './list-page.ts'
import { ADDRESSES } from './list.ts'

type WebDependencies = {
  readonly snapshots: Snapshots
  readonly schedule: CronSchedule
  readonly clock: Clock
  /** The origin by the settings. */
  readonly origin: string
  /** Public origin of the service; undefined to use the request's host. */
  readonly publicUrl: string | undefined
}

const RANKINGS = listView('apps')

const VIEWS: Readonly<Record<string, View>> = {
  [ADDRESSES.apps.page]: RANKINGS,
  [ADDRESSES.apps.csv]: listFile('apps', 'csv'),
  [ADDRESSES.apps.json]: listFile('apps', 'json'),
  [ADDRESSES.models.page]: listView('models'),
  [ADDRESSES.models.csv]: listFile('models', 'csv'),
  [ADDRESSES.models.json]: listFile('models', 'json'),
  [`${APPS_PATH}/:id`]: appView,
  [`${APPS_PATH}/:id/history.csv`]: historyFile,
  [METHOD_PATH]: methodView,
}

/** What is shown of a view. */
type Chosen = Pick<ViewContext, 'snapshot' | 'isCurrent' | 'id'> &
  Readonly<{ path: string; given: Given; encoding: Encoding }>

/** Bytes of all cached views together. */
const CACHE_BYTES = 32 * 1024 * 1024

/** The routes of the pages, their files and the feed, and a function that renders a view of a snapshot in advance. */
export function createWeb({ snapshots, schedule, clock, origin, publicUrl }: WebDependencies) {
  const keep = createBodyCache<{ readonly body: Buffer; readonly checksum: string }>(CACHE_BYTES)

  async function get(view: View, { path, given, encoding, ...shown }: Chosen, signal?: AbortSignal) {
    const entries = snapshots.catalogue.read().entries.filter(({ state }) => state === 'retained')
    const { id, data_through } = shown.snapshot
    const isOld = shown.isCurrent && isStale(data_through, schedule, clock())
    const context = { ...shown, folder: `${SNAPSHOTS_PATH}/${id}`, isStale: isOld, entries, origin }
    // The newest snapshot and their number stand for the list of snapshots.
    const key = [path, id, given, context.isCurrent, isOld, entries[0]?.id, entries.length]
    const make = async () => {
      const text = await view.make(context, given)
      return { body: Buffer.from(text), checksum: createHash('sha256').update(text).digest('hex') }
    }
    return await keep(JSON.stringify(key), encoding, make, signal)
  }

  const serve = (view: View): Handler => {
    return async (request, reply) => {
      const given = readFilled(view.parameters, queryString(request))
      const { as_of }: { as_of?: string } = given
      const signal = clientDisconnected(reply)
      using snapshot = await snapshots.take(as_of, 'pages', signal)
      const isCurrent = snapshots.current()?.id === snapshot.id
      const id = String(request.params['id'] ?? '')
      const encoding = preferredEncoding(request)
      const chosen = { snapshot, isCurrent, id, path: request.path, given, encoding }
      const { body, checksum } = await get(view, chosen, signal)
      if (view.contentType === HTML) reply.set(DOCUMENT_HEADERS)
      await sendEncoded(request, reply, { type: view.contentType, checksum, encoding }, () => body)
    }
  }

  /** Renders the rankings of a snapshot with these parameters. */
  async function warm(snapshot: Snapshot, given: Given): Promise<void> {
    const chosen = { snapshot, isCurrent: true, id: '', path: ADDRESSES.apps.page, given }
    for (const encoding of ENCODINGS) await get(RANKINGS, { ...chosen, encoding })
  }

  const open = { method: 'GET', access: 'open' } as const
  const routes: readonly Route[] = [
    ...Object.entries(VIEWS).map(([path, view]) => {
      // Files are open data for any script; a page is for its visitor.
      return { ...open, path, handle: serve(view), cors: view.contentType !== HTML }
    }),
    { ...open, path: FEED_PATH, handle: feed(snapshots, origin, publicUrl), cors: true },
    ...assetRoutes(),
  ]
  return { routes, warm }
}

/** Parameters that mailings, networks and lists add to the links of their readers. */
const ADDED = /^(?:utm_.*|mc_[ce]id|.*clk?id|ref)$/

/** Reads a query string, without what others added; empty values are what forms send for fields that are not filled in. */
function readFilled(table: ParameterTable, query: string): Given {
  const filled = [...new URLSearchParams(query)].filter(([name, value]) => value !== '' && !ADDED.test(name))
  return readParameters(table, new URLSearchParams(filled).toString())
}
