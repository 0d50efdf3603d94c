/** GET / (CONTRACT 4.6): the page for people, from the same snapshot and the same code as the API. */
import { createHash } from 'node:crypto'
import type { Request } from 'express'
import { wholeSeconds } from '../../pipeline/contract/calendar.ts'
import type { Clock, Handler, Reply } from '../http/call.ts'
import { isNotModified } from '../http/protocol/conditional.ts'
import { encode, encodedTag, encodingHeader, preferredEncoding } from '../http/protocol/encodings.ts'
import { useSnapshot, type Snapshots } from '../datasets/snapshots/choose.ts'
import type { CronSchedule } from '../process/cron-schedule.ts'
import { resolveQuery, type RankingsQuery } from '../datasets/rankings/query.ts'
import type { SnapshotCatalogue } from '../datasets/snapshots/catalogue.ts'
import type { Snapshot } from '../datasets/snapshots/open-snapshot.ts'
import { ApiError } from '../http/errors.ts'
import { queryString, sendBody } from '../http/respond.ts'
import { ageOf } from './age.ts'
import { readPageData } from './page-data.ts'
import { pageLinks } from './page-links.ts'
import { parsePageParameters, withWindow, type PageParameters } from './page-query.ts'
import { renderPage } from './page.ts'

interface HomeDependencies {
  readonly snapshots: Snapshots
  readonly catalogue: SnapshotCatalogue
  readonly schedule: CronSchedule
  readonly clock: Clock
}

/** Nothing from another host, nothing inline: styles and scripts are files of ours. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

const CONTENT_TYPE = 'text/html; charset=utf-8'
const HEADERS = {
  'Content-Type': CONTENT_TYPE,
  'Cache-Control': 'public, max-age=60, must-revalidate',
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  Vary: 'Accept-Encoding',
}

/** Renders the page. */
export function home(dependencies: HomeDependencies): Handler {
  return async (request, reply) => {
    const asked = parsePageParameters(queryString(request))
    await useSnapshot(dependencies.snapshots, asked.parameters.as_of, async (snapshot) => {
      if (snapshot instanceof ApiError) throw snapshot
      const query = resolveQuery(withWindow(asked, snapshot.dataThrough), snapshot.dataThrough)
      // Without the body there is no tag of it either, and no reason to ask for what it shows.
      if (request.method === 'HEAD') return void reply.set(HEADERS).end()
      await sendPage(request, reply, await buildPage(dependencies, { asked, query, snapshot }))
    })
  }
}

interface PageQuestion {
  readonly asked: PageParameters
  readonly query: RankingsQuery
  readonly snapshot: Snapshot
}

async function buildPage(
  { snapshots, catalogue, schedule, clock }: HomeDependencies,
  { asked, query, snapshot }: PageQuestion,
): Promise<string> {
  const metadata = catalogue.metadata(snapshot.id)
  const now = clock()
  const nextRun = schedule.next(now)
  const view = {
    snapshot,
    isCurrent: snapshots.current.facts()?.id === snapshot.id,
    query,
    asked,
    data: await readPageData(snapshot.forPages, query),
    links: pageLinks(asked),
    entries: catalogue.list(),
    freshness: {
      age: ageOf(snapshot, schedule, now),
      nextRun: nextRun === undefined ? undefined : wholeSeconds(nextRun),
    },
    bibtex: metadata?.citeAs,
  }
  return renderPage(view, metadata?.structuredData)
}

async function sendPage(request: Request, reply: Reply, page: string): Promise<void> {
  const body = Buffer.from(page)
  const encoding = preferredEncoding(request)
  const etag = encodedTag(createHash('sha256').update(body).digest('hex'), encoding)
  reply.set({ ...HEADERS, ETag: etag })
  if (isNotModified(request.headers, { etag })) return void reply.status(304).end()
  reply.set(encodingHeader(encoding))
  sendBody(reply, 200, CONTENT_TYPE, await encode(body, encoding))
}
