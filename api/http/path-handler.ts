/** What happens to the requests to one path, whatever their method: headers, key and limits, then the handler. */
import { authenticate } from '../accounts/keys/authenticate.ts'
import type { FindKey } from '../accounts/keys/key-store.ts'
import { statedLimits } from '../accounts/limits/spend.ts'
import type { Clock, Handler, Headers } from './call.ts'
import { ApiError } from './errors.ts'
import { OPEN_TO_PAGES, preflight } from './cors.ts'
import { headOf } from './respond.ts'
import type { Route } from './route.ts'

interface World {
  readonly findKey: FindKey
  readonly clock: Clock
  /** Headers of every reply. */
  readonly security: Headers
}

/** Answers the requests to `path` with the one of its routes that has their method. */
export function answerPath(
  path: string,
  routes: readonly Route[],
  { findKey, clock, security }: World,
): Handler {
  const isOpen = routes.some((route) => route.openToPages === true)
  const standing = isOpen ? { ...security, ...OPEN_TO_PAGES } : security
  const limits = routes.some((route) => route.limited === true) ? statedLimits(clock) : undefined
  const answers = new Map(
    routes.flatMap((route) => {
      const answer = answerRoute(route, findKey)
      return methodsOf(route).map((method) => [method, answer] as const)
    }),
  )
  const allow = [...answers.keys(), 'OPTIONS'].join(', ')
  answers.set('OPTIONS', withHead(isOpen ? preflight(allow) : tellMethods(allow)))
  const refuse = refuseMethod(allow)
  return (request, reply) => {
    const { locals } = reply
    locals.route = path
    locals.standing = standing
    if (limits !== undefined) locals.limits = limits()
    const answer = answers.get(request.method) ?? refuse
    return answer(request, reply)
  }
}

function methodsOf({ method }: Route): readonly string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}

function answerRoute({ access, typedErrors, writesHead, handle }: Route, findKey: FindKey): Handler {
  const answer = writesHead === true ? handle : withHead(handle)
  return (request, reply) => {
    if (typedErrors === true) reply.locals.typesErrors = true
    const unknown = access === 'open' ? undefined : authenticate(findKey, access, { request, reply })
    return unknown === undefined ? answer(request, reply) : unknown.then(() => answer(request, reply))
  }
}

/** Sets what every reply has before `handle` adds to it, or says otherwise. */
function withHead(handle: Handler): Handler {
  return (request, reply) => {
    reply.set(headOf(reply))
    return handle(request, reply)
  }
}

function tellMethods(allow: string): Handler {
  return (_request, reply) => void reply.status(204).set('Allow', allow).end()
}

function refuseMethod(allow: string): Handler {
  return (request) => {
    throw new ApiError(405, `Method ${request.method} is not allowed here; allowed: ${allow}`, {
      headers: { Allow: allow },
    })
  }
}
