import express, { type Request } from 'express'
import type { Reply } from '../call.ts'
import { ApiError } from '../errors.ts'

/** Reads the JSON body of a request, from within its handler. */
export type JsonReader = (request: Request, reply: Reply) => Promise<unknown>

/**
 * A reader of bodies of at most `limit` bytes, unpacked. It rejects with what the client did wrong: 400 for a body
 * that is no JSON or missing, 413 for one that is too large, 415 for an encoding nobody can read.
 */
export function jsonReader(limit: number): JsonReader {
  const parse = express.json({ limit, strict: false })
  return async (request, reply) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    parse(request, reply, (error?: unknown) => (error === undefined ? resolve() : reject(told(error, limit))))
    await promise
    if (request.body === undefined) {
      throw new ApiError(400, 'No JSON body: send one, with the header "Content-Type: application/json"')
    }
    return request.body
  }
}

/** The same in words that say what is allowed. */
function told(error: unknown, limit: number): unknown {
  if (!(error instanceof Error) || !('type' in error)) return error
  if (error.type === 'entity.too.large') {
    return new ApiError(413, `The body is too large: at most ${limit} bytes are allowed`)
  }
  if (error.type === 'entity.parse.failed') {
    return new ApiError(400, `The body is no valid JSON: ${error.message}`)
  }
  return error
}
