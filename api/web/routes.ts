/** The routes at the origin, for people (CONTRACT 4.6). */
import type { Request } from 'express'
import { localUrl } from '../../pipeline/program/settings.ts'
import type { Snapshots } from '../datasets/snapshots/current.ts'
import type { Handler } from '../http/call.ts'
import { queryString } from '../http/respond.ts'
import type { Route } from '../http/route.ts'
import { APPS_PATH, COMPARE_PATH, FEED_PATH, METHOD_PATH, MODELS_PAGE_PATH } from '../paths.ts'
import { appView, historyFile, searchView } from './app-pages.ts'
import { assetRoutes } from './assets.ts'
import { feed } from '../datasets/snapshots/feed.ts'
import { FILES, listFile } from './list-files.ts'
import { listView } from './list-page.ts'
import { methodView } from './method.ts'
import type { View, ViewRequest, Views } from './views.ts'

interface WebDependencies {
  readonly snapshots: Snapshots
  readonly views: Views
  /** Public origin of the service; undefined to use the request's host. */
  readonly publicUrl: string | undefined
  /** The setting PORT. */
  readonly port: number
}

/** The routes of the pages, their files and the feed. */
export function webRoutes({ snapshots, views, publicUrl, port }: WebDependencies): Route[] {
  const origin = (request: Request) => publicUrl ?? `${request.protocol}://${request.headers.host ?? ''}`
  const open = { method: 'GET', access: 'open' } as const
  const page = <Asked extends ViewRequest>(path: string, view: View<Asked>): Route => ({
    ...open,
    path,
    handle: views.serve(snapshots, view),
  })
  return [
    page('/', listView('apps')),
    page(FILES.apps.csv, listFile('apps', 'csv')),
    page(FILES.apps.json, listFile('apps', 'json')),
    page(MODELS_PAGE_PATH, listView('models')),
    page(FILES.models.csv, listFile('models', 'csv')),
    page(FILES.models.json, listFile('models', 'json')),
    page(APPS_PATH, searchView),
    page(`${APPS_PATH}/:app_id`, appView),
    page(`${APPS_PATH}/:app_id/history.csv`, historyFile),
    page(METHOD_PATH, methodView),
    { ...open, path: COMPARE_PATH, handle: redirectToRankings },
    ...assetRoutes(),
    {
      ...open,
      path: FEED_PATH,
      cors: true,
      handle: feed(snapshots, publicUrl ?? localUrl(String(port)), origin),
    },
  ]
}

/** Comparing is ticking in the rankings; addresses of the former page lead there. */
const redirectToRankings: Handler = (request, reply) => {
  const { apps = '', as_of } = Object.fromEntries(new URLSearchParams(queryString(request)))
  const query = new URLSearchParams({ apps, ...(as_of !== undefined && { as_of }), chart: 'lines' })
  reply.redirect(301, `/?${query.toString()}`)
}
