/** Answers requests for rows of the dataset (CONTRACT 4): limits, conditional requests, formats, `as_of`. */
import type { Request } from 'express'
import type { ApplyLimits } from '../../accounts/limits/rate-limiter.ts'
import type { Handler, Reply } from '../../http/call.ts'
import { isNotModified } from '../../http/protocol/conditional.ts'
import { ApiError } from '../../http/errors.ts'
import { queryString, sendBody } from '../../http/respond.ts'
import { FORMATS } from '../formats/formats.ts'
import { useSnapshot, type Snapshots } from '../snapshots/choose.ts'
import type { Snapshot } from '../snapshots/open-snapshot.ts'
import type { Answers } from './answers.ts'
import { linkField } from './links.ts'
import type { RowsRequest } from './question.ts'
import { chooseRepresentation, representationHeaders } from './representation.ts'

export interface RowsDependencies {
  readonly snapshots: Snapshots
  readonly answers: Answers
  readonly applyLimits: ApplyLimits
}

/**
 * Answers from the current snapshot, or from the one `as_of` names, and applies the limits to each request.
 * @param parse reads the query string, still encoded, and throws a 400 that lists every fault.
 */
export function replyRows(
  { snapshots, answers, applyLimits }: RowsDependencies,
  parse: (query: string) => RowsRequest,
): Handler {
  return (request, reply) => {
    const asked = refusable(() => parse(queryString(request)))
    const asOf = asked instanceof ApiError ? undefined : asked.asOf
    return useSnapshot(snapshots, asOf, async (snapshot) => {
      const outcome = refusable(() => prepare(request, asked, snapshot))
      // Counted before any answer is given: a used-up limit outranks a fault in the parameters (CONTRACT 4.1).
      await applyLimits(reply, isFree(request, outcome) ? 'free' : 'counted')
      if (outcome instanceof ApiError) throw outcome
      await send(answers, outcome, { request, reply })
    })
  }
}

function prepare(request: Request, asked: RowsRequest | ApiError, snapshot: Snapshot | ApiError) {
  if (asked instanceof ApiError) throw asked
  if (snapshot instanceof ApiError) throw snapshot
  const representation = chooseRepresentation(request, asked, snapshot)
  const lastModified = new Date(snapshot.asOf)
  return {
    representation,
    headers: representationHeaders(representation),
    isUnchanged: isNotModified(request.headers, { etag: representation.etag, lastModified }),
  }
}

type Prepared = ReturnType<typeof prepare>

function refusable<Result>(work: () => Result): Result | ApiError {
  try {
    return work()
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

// A 304 and a HEAD do not count (CONTRACT 4.5), and neither does a request before the first snapshot. One that finds
// the queries too many, or too slow, does: it is counted before the data is asked.
function isFree(request: Request, outcome: Prepared | ApiError): boolean {
  if (request.method === 'HEAD') return true
  return outcome instanceof ApiError ? outcome.status === 503 : outcome.isUnchanged
}

async function send(
  answers: Answers,
  { representation, headers, isUnchanged }: Prepared,
  { request, reply }: { readonly request: Request; readonly reply: Reply },
): Promise<void> {
  if (isUnchanged) return void reply.status(304).set(headers).end()
  const { contentType } = FORMATS[representation.format]
  // A HEAD is free, so it must not cost a query either: it goes without Content-Length.
  if (request.method === 'HEAD') {
    reply.set({ ...headers, Link: linkField(representation, undefined), 'Content-Type': contentType }).end()
    return
  }
  const answer = await answers.get(representation)
  sendBody(reply.set({ ...headers, ...answer.headers }), 200, contentType, answer.body)
}
