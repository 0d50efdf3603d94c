/** What happens to the requests to one path, whatever their method: headers, key and limits, then the handler. */
import { authenticate } from '../accounts/keys/authenticate.ts'
import { fullQuotas } from '../accounts/limits/policies.ts'
import { quotaHeaders } from '../accounts/limits/quota-headers.ts'
import type { RequestStore } from '../store/request-store.ts'
import type { Clock, Handler } from './call.ts'
import { ApiError } from './errors.ts'
import { CORS_HEADERS, isApiPath, preflight } from './cors.ts'
import type { Route } from './route.ts'

interface Dependencies {
  readonly store: RequestStore
  readonly clock: Clock
}

/** Answers the requests to `path` with the one of its routes that has their method. */
export function answerPath(path: string, routes: readonly Route[], { store, clock }: Dependencies): Handler {
  const isLimited = routes.some((route) => route.limited === true)
  const addsCors = routes.some((route) => route.cors === true)
  const answers = new Map(
    routes.flatMap((route) => {
      const answer = answerRoute(route, store)
      return methodsOf(route).map((method) => [method, answer] as const)
    }),
  )
  const allow = [...answers.keys(), 'OPTIONS'].join(', ')
  answers.set('OPTIONS', addsCors || isApiPath(path) ? preflight(allow) : listMethods(allow))
  const refuse = refuseMethod(allow)
  return (request, reply) => {
    reply.locals.route = path
    if (addsCors) reply.set(CORS_HEADERS)
    // Replies that end before anything is counted, such as a 401, state the full quota.
    if (isLimited) reply.set(quotaHeaders(fullQuotas(clock())))
    const answer = answers.get(request.method) ?? refuse
    return answer(request, reply)
  }
}

function methodsOf({ method }: Route): readonly string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}

function answerRoute({ access, typedErrors, handle }: Route, store: RequestStore): Handler {
  return async (request, reply) => {
    if (typedErrors === true) reply.locals.typesErrors = true
    if (access !== 'open') await authenticate(store, access, { request, reply })
    await handle(request, reply)
  }
}

function listMethods(allow: string): Handler {
  return (_request, reply) => void reply.status(204).set('Allow', allow).end()
}

function refuseMethod(allow: string): Handler {
  return (request) => {
    throw new ApiError(405, `Method ${request.method} is not allowed here; allowed: ${allow}`, {
      headers: { Allow: allow },
    })
  }
}
