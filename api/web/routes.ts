/** The routes at the origin, for people and for discovery by programs (CONTRACT 4.6). */
import { readFileSync } from 'node:fs'
import type { Request } from 'express'
import { localUrl } from '../../pipeline/program/settings.ts'
import type { Handler } from '../http/call.ts'
import type { Snapshots } from '../datasets/snapshots/choose.ts'
import type { SnapshotCatalogue } from '../datasets/snapshots/catalogue.ts'
import { fixedBody } from '../http/protocol/fixed-body.ts'
import {
  APPS_PATH,
  BASE_PATH,
  COMPARE_PATH,
  DOCUMENT_PATH,
  FEED_PATH,
  METHOD_PATH,
  MODELS_PAGE_PATH,
  REFERENCE_PATH,
  STATUS_PATH,
} from '../paths.ts'
import { jsonText, sendBody } from '../http/respond.ts'
import type { Route } from '../http/route.ts'
import { feed } from './feed.ts'
import { appView } from './apps/app-page.ts'
import { badgeFile, chartFile, historyFile } from './apps/app-files.ts'
import { compareView } from './apps/compare-page.ts'
import { searchView } from './apps/search-page.ts'
import { methodView } from './method.ts'
import { modelsView } from './models/models-page.ts'
import { card, chartPictures } from './ranking/pictures.ts'
import { rankingFile } from './ranking/file-views.ts'
import { rankingView } from './ranking/view.ts'
import { serveView, type ViewRequest, type View, type Views } from './views.ts'

interface WebDependencies {
  readonly snapshots: Snapshots
  readonly catalogue: SnapshotCatalogue
  readonly views: Views
  /** Public origin of the service; undefined to use the request's host. */
  readonly publicUrl: string | undefined
  /** The setting PORT. */
  readonly port: number
}

const ASSETS = {
  'page.css': 'text/css; charset=utf-8',
  'reference.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const

/** The routes of the pages, their files, the feed and the catalogue. */
export function webRoutes({ snapshots, catalogue, views, publicUrl, port }: WebDependencies): Route[] {
  const origin = (request: Request) => publicUrl ?? `${request.protocol}://${request.headers.host ?? ''}`
  const open = { method: 'GET', access: 'open' } as const
  const view = <Asked extends ViewRequest>(each: View<Asked>) => serveView(views, snapshots, each)
  return [
    { ...open, path: '/', handle: view(rankingView(catalogue)) },
    { ...open, path: '/rankings.csv', handle: view(rankingFile('csv')) },
    { ...open, path: '/rankings.json', handle: view(rankingFile('json')) },
    { ...open, path: '/chart.svg', handle: view(chartPictures.svg) },
    { ...open, path: '/chart.png', handle: view(chartPictures.png) },
    { ...open, path: '/card.png', handle: view(card) },
    { ...open, path: MODELS_PAGE_PATH, handle: view(modelsView) },
    { ...open, path: METHOD_PATH, handle: view(methodView) },
    { ...open, path: APPS_PATH, handle: view(searchView) },
    { ...open, path: `${APPS_PATH}/:app_id`, handle: view(appView) },
    { ...open, path: `${APPS_PATH}/:app_id/history.csv`, handle: view(historyFile) },
    { ...open, path: `${APPS_PATH}/:app_id/chart.svg`, handle: view(chartFile) },
    { ...open, path: `${APPS_PATH}/:app_id/badge.svg`, handle: view(badgeFile) },
    { ...open, path: COMPARE_PATH, handle: view(compareView) },
    ...Object.entries(ASSETS).map(([name, contentType]) => ({
      ...open,
      path: `/assets/${name}`,
      handle: asset(name, contentType),
    })),
    { ...open, path: '/robots.txt', handle: asset('robots.txt', 'text/plain; charset=utf-8') },
    {
      ...open,
      path: FEED_PATH,
      cors: true,
      handle: feed(catalogue, publicUrl ?? localUrl(String(port)), origin),
    },
    { ...open, path: '/.well-known/api-catalog', cors: true, handle: apiCatalog(origin) },
  ]
}

function asset(name: string, contentType: string): Handler {
  const bytes = readFileSync(new URL(`assets/${name}`, import.meta.url))
  return fixedBody(contentType, bytes, { 'Cache-Control': 'public, max-age=3600' })
}

/** RFC 9727: links to the description, the status and the metadata of the API. */
function apiCatalog(origin: (request: Request) => string): Handler {
  return (request, reply) => {
    const at = origin(request)
    const linkset = [
      {
        anchor: `${at}${BASE_PATH}`,
        'service-desc': [{ href: `${at}${DOCUMENT_PATH}`, type: 'application/json' }],
        'service-doc': [{ href: `${at}${REFERENCE_PATH}`, type: 'text/html' }],
        status: [{ href: `${at}${STATUS_PATH}`, type: 'application/json' }],
      },
    ]
    reply.set('Cache-Control', 'public, max-age=3600')
    sendBody(
      reply,
      200,
      'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
      jsonText({ linkset }),
    )
  }
}
