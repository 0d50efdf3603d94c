/** GET /datasets/app-rankings (CONTRACT 4): the top public apps by token usage inside a date window. */
import type { Request } from 'express'
import type { ApplyLimits } from '../../accounts/limits/apply-limits.ts'
import type { Handler, Reply } from '../../http/call.ts'
import { isNotModified } from '../../http/protocol/conditional.ts'
import { ApiError } from '../../http/errors.ts'
import { queryString, sendBody } from '../../http/respond.ts'
import { FORMATS } from '../formats/formats.ts'
import { useSnapshot, type Snapshots } from '../snapshots/choose.ts'
import type { Snapshot } from '../snapshots/open-snapshot.ts'
import { linkField } from './links.ts'
import { parseParameters, type Parameters } from './parameters.ts'
import type { Answers } from './replies.ts'
import { chooseRepresentation, representationHeaders } from './representation.ts'

/** Serves the rankings of the current snapshot, or of the one `as_of` names, and applies the limits to each request. */
export function appRankings(snapshots: Snapshots, answers: Answers, applyLimits: ApplyLimits): Handler {
  return (request, reply) => {
    const parameters = refusable(() => parseParameters(queryString(request)))
    const asOf = parameters instanceof ApiError ? undefined : parameters.as_of
    return useSnapshot(snapshots, asOf, async (snapshot) => {
      const outcome = refusable(() => prepare(request, parameters, snapshot))
      // Counted before any answer is given: a used-up limit outranks a fault in the parameters (CONTRACT 4.1).
      await applyLimits(reply, isFree(request, outcome) ? 'free' : 'counted')
      if (outcome instanceof ApiError) throw outcome
      await send(answers, outcome, { request, reply })
    })
  }
}

function prepare(request: Request, parameters: Parameters | ApiError, snapshot: Snapshot | ApiError) {
  if (parameters instanceof ApiError) throw parameters
  if (snapshot instanceof ApiError) throw snapshot
  const representation = chooseRepresentation(request, parameters, snapshot)
  const lastModified = new Date(snapshot.asOf)
  return {
    representation,
    headers: representationHeaders(representation, parameters),
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
  const { body, link } = await answers.get(representation)
  sendBody(reply.set({ ...headers, Link: link }), 200, contentType, body)
}
