/** GET /datasets/app-rankings (CONTRACT 4): the top public apps by token usage inside a date window. */
import type { Request } from 'express'
import type { Spend } from '../accounts/spend.ts'
import type { Handler, Reply } from '../call.ts'
import { isNotModified, type Validators } from '../conditional.ts'
import { ApiError } from '../errors.ts'
import { queryString, sendBytes } from '../respond.ts'
import { useSnapshot, type Snapshots } from './choose-snapshot.ts'
import { keyOf, type Answers, type Question } from './answers.ts'
import { chooseEncoding, type Encoding } from './encodings.ts'
import { chooseFormat, FORMATS } from './formats.ts'
import { linkField, pinnedAddress, type Place } from './links.ts'
import { parseParameters, type Parameters } from './parameters.ts'
import { resolveQuery } from './query.ts'
import type { Snapshot } from './snapshot.ts'

/** What a request will get, known before it is counted and before the data is asked. */
type Answer =
  | { readonly kind: 'refused'; readonly fault: ApiError }
  | {
      readonly kind: 'unchanged' | 'rows'
      readonly question: Question
      readonly encoding: Encoding
      readonly headers: Readonly<Record<string, string>>
    }

/** Serves the rankings of the current snapshot, or of the one `as_of` names, and counts each request with `spend`. */
export function appRankings(snapshots: Snapshots, answers: Answers, spend: Spend): Handler {
  return async (request, reply) => {
    const parameters = refusable(() => parseParameters(queryString(request)))
    const asOf = parameters instanceof ApiError ? undefined : parameters.as_of
    await useSnapshot(snapshots, asOf, async (snapshot) => {
      const answer = prepare(request, parameters, snapshot)
      // Settled before any answer is given: a used-up limit outranks a fault in the parameters (CONTRACT 4.1).
      await spend(reply, isFree(request, answer) ? 'free' : 'counted')
      await send(answers, request, reply, answer)
    })
  }
}

function prepare(request: Request, parameters: Parameters | ApiError, snapshot: Snapshot | ApiError): Answer {
  if (parameters instanceof ApiError) return { kind: 'refused', fault: parameters }
  if (snapshot instanceof ApiError) return { kind: 'refused', fault: snapshot }
  const question = refusable(() => questionOf(request, parameters, snapshot))
  if (question instanceof ApiError) return { kind: 'refused', fault: question }
  const encoding = chooseEncoding(request, question.format)
  const validators = validatorsOf(question, encoding)
  return {
    kind: isNotModified(request.headers, validators) ? 'unchanged' : 'rows',
    question,
    encoding,
    headers: {
      ...cachingHeaders(question, validators, parameters.as_of !== undefined),
      ...(encoding === 'identity' ? {} : { 'Content-Encoding': encoding }),
    },
  }
}

function questionOf(request: Request, parameters: Parameters, snapshot: Snapshot): Question {
  const query = resolveQuery(parameters, snapshot.dataThrough)
  return { snapshot, query, format: chooseFormat(request, parameters.format) }
}

function refusable<Result>(work: () => Result): Result | ApiError {
  try {
    return work()
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

// A 304 and a HEAD do not count (CONTRACT 4.5), and neither does a request that we cannot serve yet.
function isFree(request: Request, answer: Answer): boolean {
  if (request.method === 'HEAD' || answer.kind === 'unchanged') return true
  return answer.kind === 'refused' && answer.fault.status === 503
}

async function send(answers: Answers, request: Request, reply: Reply, answer: Answer): Promise<void> {
  if (answer.kind === 'refused') throw answer.fault
  const { question, encoding, headers } = answer
  if (answer.kind === 'unchanged') {
    reply.status(304).set(headers).end()
    return
  }
  const { contentType } = FORMATS[question.format]
  // A HEAD is free, so it must not cost a query either: it goes without Content-Length.
  if (request.method === 'HEAD') {
    reply.set({ ...headers, 'Content-Type': contentType, Link: linkField(question, undefined) }).end()
    return
  }
  const { body, link } = await answers.get(question, encoding)
  reply.set({ ...headers, Link: link })
  sendBytes(reply, 200, contentType, body)
}

// Each coding is a representation of its own, so it has a tag of its own.
function validatorsOf(question: Question, encoding: Encoding): Required<Validators> {
  const coding = encoding === 'identity' ? '' : `.${encoding}`
  return { etag: `"${keyOf(question)}${coding}"`, lastModified: new Date(question.snapshot.asOf) }
}

function cachingHeaders(
  place: Place,
  { etag, lastModified }: Required<Validators>,
  pinned: boolean,
): Readonly<Record<string, string>> {
  return {
    ETag: etag,
    'Last-Modified': lastModified.toUTCString(),
    // What a snapshot says never changes, but it may be withdrawn.
    'Cache-Control': pinned ? 'private, max-age=86400' : 'private, max-age=300, must-revalidate',
    'Content-Location': pinnedAddress(place),
    Vary: 'Accept, Accept-Encoding, Authorization',
  }
}
