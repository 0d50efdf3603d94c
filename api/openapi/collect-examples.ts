/** Collects the document's examples from a service over the bundled sample. */
import { z } from 'zod'
import type { Route } from '../http/route.ts'

/** Replies by `operationId status`. */
export type Examples = Readonly<Record<string, unknown>>

const jsonBody = z.record(z.string(), z.unknown())

/** Replaces the random account id, which would change the document each time. */
const ACCOUNT_ID = '72cbc1f0-bd75-4c41-89b8-a7d3c9011e5a'

/** Sends the example requests of each route to `origin`, with suitable keys. */
export async function collectExamples(
  routes: readonly Route[],
  origin: string,
  key: string,
): Promise<Examples> {
  const examples: Record<string, unknown> = {}
  for (const { operation, method } of routes) {
    for (const { path, withoutKey, headers } of operation?.examples ?? []) {
      const authorization = withoutKey === true ? {} : { Authorization: `Bearer ${key}` }
      const response = await fetch(`${origin}${path}`, { method, headers: { ...authorization, ...headers } })
      const body = jsonBody.parse(await response.json())
      const { user_id } = body
      examples[`${operation?.id} ${response.status}`] =
        typeof user_id === 'string' ? { ...body, user_id: ACCOUNT_ID } : body
    }
  }
  return examples
}
