/** Answers requests for rows of the dataset (CONTRACT 4): limits, conditional requests, formats, `as_of`. */
import type { Request } from 'express'
import { LRUCache } from 'lru-cache'
import type { ApplyLimits } from '../../accounts/limits/rate-limiter.ts'
import type { Handler } from '../../http/call.ts'
import { isNotModified } from '../../http/protocol/conditional.ts'
import { ApiError } from '../../http/errors.ts'
import { queryString, sendBody } from '../../http/respond.ts'
import { FORMATS } from '../formats/formats.ts'
import type { Snapshots } from '../snapshots/choose.ts'
import type { Snapshot } from '../snapshots/facts.ts'
import type { Answers } from './answers.ts'
import { linkField } from './links.ts'
import type { RowsRequest } from './question.ts'
import { chooseForm, representationHeaders, representationOf, type Form } from './representation.ts'

export interface RowsDependencies {
  readonly snapshots: Snapshots
  readonly answers: Answers
  readonly applyLimits: ApplyLimits
}

/** Reads the query string of a request, still encoded, and throws a 400 that lists every fault. */
type Parse = (query: string) => RowsRequest

/** Cached requests by their exact text; each takes some kilobytes. */
const CACHED_REQUESTS = 500

/** Answers from the current snapshot, or from the one in `as_of`, and applies the limits to each request. */
export function replyRows({ snapshots, answers, applyLimits }: RowsDependencies, parse: Parse): Handler {
  // Programs repeat the same request.
  const requests = new LRUCache<string, ParsedRequest, Request>({
    max: CACHED_REQUESTS,
    memoMethod: (_words, _former, { context: request }) => readRequest(request, parse),
  })
  return async (request, reply) => {
    const { accept, 'accept-encoding': encodings } = request.headers
    const words = JSON.stringify([request.url, accept, encodings])
    using held = new DisposableStack()
    let found: Found | undefined
    let refusal: unknown
    try {
      const parsed = requests.memo(words, { context: request })
      const snapshot = held.use(await snapshots.take(parsed.asOf, 'clients'))
      found = find(snapshot, parsed)
    } catch (error) {
      refusal = error
    }
    const isHead = request.method === 'HEAD'
    const isUnchanged = found !== undefined && isNotModified(request.headers, found)
    // A 304, a HEAD and a request before the first snapshot do not count (CONTRACT 4.5). A 503 from overload does: it
    // is counted before the query.
    const isFree = isHead || isUnchanged || (refusal instanceof ApiError && refusal.status === 503)
    // Counted before the answer: a used-up limit takes precedence over invalid parameters (CONTRACT 4.1).
    await applyLimits(reply, isFree ? 'free' : 'counted')
    if (found === undefined) throw refusal
    if (isUnchanged) return void reply.status(304).set(found.headers).end()
    // A HEAD is free, so it must not cost a query: it has no Content-Length.
    if (isHead) return void reply.set(headHeaders(found)).end()
    const { headers, body } = await answers.get(found)
    sendBody(reply.set({ ...found.headers, ...headers }), 200, FORMATS[found.format].contentType, body)
  }
}

type Found = ReturnType<typeof find>

function readRequest(request: Request, parse: Parse): ParsedRequest {
  const rows = parse(queryString(request))
  return { ...rows, chosen: () => chooseForm(request, rows) }
}

interface ParsedRequest extends RowsRequest {
  /** @throws {ApiError} 400 or 406 if there is no such format. */
  readonly chosen: () => Form
}

function find(snapshot: Snapshot, rows: ParsedRequest) {
  const question = rows.resolve(snapshot)
  const form = rows.chosen()
  const representation = representationOf({ snapshot, question, ...form }, form.encoding)
  return {
    ...representation,
    lastModified: new Date(snapshot.asOf),
    headers: representationHeaders(representation),
  }
}

function headHeaders(found: Found) {
  const { headers, format } = found
  return { ...headers, Link: linkField(found, undefined), 'Content-Type': FORMATS[format].contentType }
}
