/** GET /datasets/app-rankings (CONTRACT 4): the top public apps by token usage inside a date window. */
import { readFileSync } from 'node:fs'
import type { Request } from 'express'
import { z } from 'zod'
import { DATASET_VERSION, rankingRowSchema, type RankingMeta, type Sort } from '../../pipeline/contract.ts'
import type { Spend } from '../accounts/spend.ts'
import type { Handler, Reply } from '../call.ts'
import { isNotModified, type Validators } from '../conditional.ts'
import { ApiError } from '../errors.ts'
import { queryString, sendJson } from '../respond.ts'
import type { CurrentSnapshot } from './current-snapshot.ts'
import { parseParameters } from './parameters.ts'
import { resolveQuery, type RankingsQuery } from './query.ts'
import type { Snapshot, SnapshotFacts } from './snapshot.ts'

const SQL: Readonly<Record<Sort, string>> = {
  popular: readFileSync(new URL('popular.sql', import.meta.url), 'utf8'),
  trending: readFileSync(new URL('trending.sql', import.meta.url), 'utf8'),
}

const RETRY_AFTER_SECONDS = 60

const rowsSchema = z.array(rankingRowSchema)

/** What a request will get, known before it is counted and before the data is asked. */
type Answer =
  | { readonly kind: 'refused'; readonly fault: ApiError }
  | { readonly kind: 'unchanged'; readonly validators: Validators }
  | {
      readonly kind: 'rows'
      readonly validators: Validators
      readonly snapshot: Snapshot
      readonly query: RankingsQuery
    }

/** Serves the rankings of the current snapshot and counts each request with `spend`. */
export function appRankings(snapshots: CurrentSnapshot, spend: Spend): Handler {
  return (request, reply) =>
    snapshots.use(async (snapshot) => {
      const answer = prepare(request, snapshot)
      // Settled before any answer is given: a used-up limit outranks a fault in the parameters (CONTRACT 4.1).
      await spend(reply, isFree(request, answer) ? 'free' : 'counted')
      await send(request, reply, answer)
    })
}

function prepare(request: Request, snapshot: Snapshot | undefined): Answer {
  try {
    const parameters = parseParameters(queryString(request))
    if (snapshot === undefined) throw noSnapshotYet()
    const query = resolveQuery(parameters, snapshot.dataThrough)
    const validators = validatorsOf(snapshot, query)
    return isNotModified(request.headers, validators)
      ? { kind: 'unchanged', validators }
      : { kind: 'rows', validators, snapshot, query }
  } catch (error) {
    if (error instanceof ApiError) return { kind: 'refused', fault: error }
    throw error
  }
}

// A 304 and a HEAD do not count (CONTRACT 4.5), and neither does a request that we cannot serve yet.
function isFree(request: Request, answer: Answer): boolean {
  if (request.method === 'HEAD' || answer.kind === 'unchanged') return true
  return answer.kind === 'refused' && answer.fault.status === 503
}

async function send(request: Request, reply: Reply, answer: Answer): Promise<void> {
  if (answer.kind === 'refused') throw answer.fault
  if (answer.kind === 'unchanged') {
    reply.status(304).set(cachingHeaders(answer.validators)).end()
    return
  }
  // A HEAD is free, so it must not cost a query either: it goes without Content-Length.
  const body = request.method === 'HEAD' ? undefined : await readRankings(answer.snapshot, answer.query)
  reply.set(cachingHeaders(answer.validators))
  if (body === undefined) reply.type('json').end()
  else sendJson(reply, 200, body)
}

async function readRankings(snapshot: Snapshot, { sort, ...values }: RankingsQuery): Promise<unknown> {
  const meta: RankingMeta = {
    as_of: snapshot.asOf,
    start_date: values.start,
    end_date: values.end,
    version: DATASET_VERSION,
  }
  return { data: rowsSchema.parse(await snapshot.query(SQL[sort], values)), meta }
}

// Every part is one of a closed set, a date or a number, so no two queries share a tag.
function validatorsOf(snapshot: SnapshotFacts, query: RankingsQuery): Validators {
  const { sort, category, subcategory, start, end, limit, offset } = query
  const parts = [snapshot.id, sort, subcategory ?? category ?? 'all', start, end, limit, offset]
  return { etag: `"${parts.join('.')}"`, lastModified: new Date(snapshot.asOf) }
}

function cachingHeaders({ etag, lastModified }: Validators): Readonly<Record<string, string>> {
  return {
    ETag: etag,
    'Last-Modified': lastModified.toUTCString(),
    'Cache-Control': 'private, max-age=300, must-revalidate',
    Vary: 'Accept, Accept-Encoding, Authorization',
  }
}

function noSnapshotYet(): ApiError {
  return new ApiError(503, 'No snapshot of the dataset has been published yet', {
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
  })
}
