/** Answers requests for rows of the dataset (CONTRACT 4): limits, conditional requests, formats, `as_of`. */
import type { Request } from 'express'
import { LRUCache } from 'lru-cache'
import type { ApplyLimits } from '../../accounts/limits/rate-limiter.ts'
import type { Handler } from '../../http/call.ts'
import { isNotModified } from '../../http/protocol/conditional.ts'
import { ApiError } from '../../http/errors.ts'
import { queryString, sendBody } from '../../http/respond.ts'
import { FORMATS } from '../formats/formats.ts'
import { useSnapshot, type Snapshots } from '../snapshots/choose.ts'
import type { Snapshot } from '../snapshots/open-snapshot.ts'
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
  return (request, reply) => {
    const { accept, 'accept-encoding': encodings } = request.headers
    const words = JSON.stringify([request.url, accept, encodings])
    const parsed = requests.memo(words, { context: request })
    return useSnapshot(snapshots, parsed.asOf, async (snapshot) => {
      const found = parsed.of(snapshot)
      const isRefused = found instanceof ApiError
      const isHead = request.method === 'HEAD'
      const isUnchanged = !isRefused && isNotModified(request.headers, found)
      // A 304, a HEAD and a request before the first snapshot do not count (CONTRACT 4.5). A 503 from overload does: it
      // is counted before the query.
      const isFree = isHead || isUnchanged || (isRefused && found.status === 503)
      // Counted before the answer: a used-up limit takes precedence over invalid parameters (CONTRACT 4.1).
      await applyLimits(reply, isFree ? 'free' : 'counted')
      if (isRefused) throw found
      if (isUnchanged) return void reply.status(304).set(found.headers).end()
      // A HEAD is free, so it must not cost a query: it has no Content-Length.
      if (isHead) return void reply.set(headHeaders(found)).end()
      const { headers, body } = await answers.get(found)
      sendBody(reply.set({ ...found.headers, ...headers }), 200, FORMATS[found.format].contentType, body)
    })
  }
}

/** A parsed request. */
interface ParsedRequest {
  readonly asOf: string | undefined
  /** The representation in a snapshot, or the error. */
  readonly of: (snapshot: Snapshot | ApiError) => Found | ApiError
}

type Found = ReturnType<typeof find>

function readRequest(request: Request, parse: Parse): ParsedRequest {
  const rows = refusable(() => parse(queryString(request)))
  const form = rows instanceof ApiError ? rows : refusable(() => chooseForm(request, rows))
  let last: { readonly snapshot: Snapshot | ApiError; readonly found: Found | ApiError } | undefined
  return {
    asOf: rows instanceof ApiError ? undefined : rows.asOf,
    of(snapshot) {
      if (last?.snapshot !== snapshot) {
        last = { snapshot, found: refusable(() => find(snapshot, rows, form)) }
      }
      return last.found
    },
  }
}

function find(snapshot: Snapshot | ApiError, rows: RowsRequest | ApiError, form: Form | ApiError) {
  if (rows instanceof ApiError) throw rows
  if (snapshot instanceof ApiError) throw snapshot
  const question = rows.resolve(snapshot)
  if (form instanceof ApiError) throw form
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

function refusable<Result>(work: () => Result): Result | ApiError {
  try {
    return work()
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}
