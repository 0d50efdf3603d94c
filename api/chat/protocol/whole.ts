/** A reply in one piece, from one attempt. */
import type { JsonObject } from '../../untrusted/json.ts'
import type { Attempt } from '../routing/attempt.ts'
import { isFilteredOut, readCompletion, type Answerer, type Completion } from './completion.ts'
import { AttemptFailure } from '../routing/failure.ts'
import { readJsonReply, type Upstream } from './upstream.ts'

export interface Asked {
  readonly body: JsonObject
  readonly answerer: Answerer
  /** Whether there is no other model to try, so that an answer held back by a filter is the answer. */
  readonly isLastModel: boolean
}

/**
 * Asks for a completion.
 * @throws {AttemptFailure} when the provider gives none.
 */
export async function complete(upstream: Upstream, attempt: Attempt, asked: Asked): Promise<Completion> {
  const reply = await upstream.post(attempt.target.upstream, asked.body, attempt.signal)
  attempt.answered(reply.statusCode)
  const completion = readCompletion(await readJsonReply(reply, attempt.signal), asked.answerer)
  if (!asked.isLastModel && isFilteredOut(completion)) throw new AttemptFailure('filtered', { status: 200 })
  return completion
}
