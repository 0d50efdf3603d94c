/** GET /datasets/app-rankings (CONTRACT 4): the top public apps by token usage inside a date window. */
import type { Request } from 'express'
import type { Spend } from '../../accounts/limits/spend.ts'
import type { Call, Handler } from '../../http/call.ts'
import { isNotModified } from '../../http/protocol/conditional.ts'
import { ApiError } from '../../http/errors.ts'
import { sendReady } from '../../http/respond.ts'
import { useSnapshot, type Snapshots } from '../snapshots/choose.ts'
import { linesOf, type Answers, type ReadyAnswer } from './replies.ts'
import { FORMATS } from '../formats/formats.ts'
import type { Parameters } from './parameters.ts'
import { createPlanner, type Plan, type Planner } from './plan.ts'
import type { Snapshot } from '../snapshots/open-snapshot.ts'

/** What a request will get, known before it is counted and before the data is asked. */
type Answer =
  | { readonly kind: 'refused'; readonly fault: ApiError }
  | { readonly kind: 'unchanged' | 'rows'; readonly snapshot: Snapshot; readonly plan: Plan }

/** Serves the rankings of the current snapshot, or of the one `as_of` names, and counts each request with `spend`. */
export function appRankings(snapshots: Snapshots, answers: Answers, spend: Spend): Handler {
  const planner = createPlanner()
  return (request, reply) => {
    const call = { request, reply }
    const parameters = refusable(() => planner.parametersOf(request))
    const asOf = parameters instanceof ApiError ? undefined : parameters.as_of
    return useSnapshot(snapshots, asOf, async (snapshot) => {
      const answer = prepare(planner, call, { parameters, snapshot })
      // Settled before any answer is given: a used-up limit outranks a fault in the parameters (CONTRACT 4.1).
      await spend(reply, isFree(request, answer) ? 'free' : 'counted')
      await send(answers, call, answer)
    })
  }
}

interface Asked {
  readonly parameters: Parameters | ApiError
  readonly snapshot: Snapshot | ApiError
}

function prepare(planner: Planner, call: Call, { parameters, snapshot }: Asked): Answer {
  if (parameters instanceof ApiError) return { kind: 'refused', fault: parameters }
  if (snapshot instanceof ApiError) return { kind: 'refused', fault: snapshot }
  const plan = refusable(() => planner.planOf(call, parameters, snapshot))
  if (plan instanceof ApiError) return { kind: 'refused', fault: plan }
  const { representation, lastModified } = plan
  const isUnchanged = isNotModified(call.request.headers, { etag: representation.etag, lastModified })
  return { kind: isUnchanged ? 'unchanged' : 'rows', snapshot, plan }
}

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
function isFree(request: Request, answer: Answer): boolean {
  if (request.method === 'HEAD' || answer.kind === 'unchanged') return true
  return answer.kind === 'refused' && answer.fault.status === 503
}

function send(answers: Answers, { request, reply }: Call, answer: Answer): void | Promise<void> {
  if (answer.kind === 'refused') throw answer.fault
  const { query, format, representation, lines } = answer.plan
  if (answer.kind === 'unchanged') return sendReady(reply, { status: 304, lines })
  const question = { snapshot: answer.snapshot, query, format }
  const { contentType } = FORMATS[format]
  // A HEAD is free, so it must not cost a query either: it goes without Content-Length.
  if (request.method === 'HEAD') {
    return sendReady(reply, { status: 200, lines: lines + linesOf(question, undefined), contentType })
  }
  const sendRows = (answered: ReadyAnswer) =>
    sendReady(reply, { status: 200, lines: lines + answered.lines, contentType, body: answered.body })
  const ready = answers.get(question, representation)
  return ready instanceof Promise ? ready.then(sendRows) : sendRows(ready)
}
