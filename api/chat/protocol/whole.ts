/** A reply in one piece, from one attempt. */
import { parseJson } from '../../untrusted/json.ts'
import type { Attempt } from '../routing/attempt.ts'
import { AttemptFailure } from '../routing/failure.ts'
import { eventsOfText } from '../upstream/events.ts'
import { failureOf } from '../upstream/provider-error.ts'
import { readText, REPLY_BYTES } from '../upstream/reply-body.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { assembled } from './assembled.ts'
import { isFilteredOut, readCompletion, type Answerer, type Completion } from './completion.ts'

export interface UpstreamRequest {
  /** JSON text. */
  readonly body: string
  readonly answerer: Answerer
  /** The requested number of choices. */
  readonly choices: number
  /** Whether no other model is left, so that an answer held back by a filter is the answer. */
  readonly isLastModel: boolean
}

/**
 * Requests a completion.
 * @throws {AttemptFailure} if the provider returns none.
 */
export async function complete(
  upstream: Upstream,
  attempt: Attempt,
  request: UpstreamRequest,
): Promise<Completion> {
  const reply = await upstream.post(attempt.target.upstream, request.body, attempt.signal)
  attempt.answered(reply.statusCode)
  const text = await readText(reply.body, REPLY_BYTES, attempt.signal)
  const completion = readCompletion(valueIn(text, reply.statusCode, request.answerer), request.answerer)
  if (!request.isLastModel && isFilteredOut(completion)) throw new AttemptFailure('filtered')
  return completion
}

function valueIn(text: string, status: number, answerer: Answerer): unknown {
  const value = parseJson(text)
  if (value !== undefined && !Array.isArray(value)) return value
  const events = eventsOfText(text)
  if (events.length === 0) throw failureOf(status, text)
  return assembled(events, answerer)
}
