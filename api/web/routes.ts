/** The routes at the origin, for people (CONTRACT 4.6). */
import type { Request } from 'express'
import type { Snapshots } from '../datasets/snapshots/current.ts'
import { queryString, type Handler } from '../http/call.ts'
import type { Route } from '../http/route.ts'
import { APPS_PATH, COMPARE_PATH, FEED_PATH, METHOD_PATH } from '../paths.ts'
import { appView, historyFile } from './app-page.ts'
import { assetRoutes } from './assets.ts'
import { methodView } from './document.ts'
import { feed } from './feed.ts'
import { address } from './html.ts'
import { FILES, listFile } from './list-data.ts'
import { listView, PAGES } from './list-page.ts'
import type { View, Views } from './views.ts'

interface WebDependencies {
  readonly snapshots: Snapshots
  readonly views: Views
  /** The origin by the settings. */
  readonly origin: string
  /** Public origin of the service; undefined to use the request's host. */
  readonly publicUrl: string | undefined
}

/** The routes of the pages, their files and the feed. */
export function webRoutes({ snapshots, views, origin, publicUrl }: WebDependencies): Route[] {
  const pages: Readonly<Record<string, View>> = {
    [PAGES.apps]: listView('apps'),
    [FILES.apps.csv]: listFile('apps', 'csv'),
    [FILES.apps.json]: listFile('apps', 'json'),
    [PAGES.models]: listView('models'),
    [FILES.models.csv]: listFile('models', 'csv'),
    [FILES.models.json]: listFile('models', 'json'),
    [`${APPS_PATH}/:id`]: appView,
    [`${APPS_PATH}/:id/history.csv`]: historyFile,
    [METHOD_PATH]: methodView,
  }
  const addressed = (request: Request) => publicUrl ?? `${request.protocol}://${request.headers.host ?? ''}`
  const atom = feed(snapshots, origin, addressed)
  const open = { method: 'GET', access: 'open' } as const
  return [
    ...Object.entries(pages).map(([path, view]) => ({ ...open, path, handle: views.serve(view) })),
    { ...open, path: FEED_PATH, handle: atom, cors: true },
    { ...open, path: COMPARE_PATH, handle: redirectToRankings },
    ...assetRoutes(),
  ]
}

/** Comparing is ticking in the rankings; addresses of the former page lead there. */
const redirectToRankings: Handler = (request, reply) => {
  const { apps, as_of } = Object.fromEntries(new URLSearchParams(queryString(request)))
  reply.redirect(301, address('/', { apps, as_of, chart: 'lines' }))
}
