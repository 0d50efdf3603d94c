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
    parse(request, reply, (error?: unknown) => (error === undefined ? resolve() : reject(error)))
    await promise
    if (request.body === undefined) {
      throw new ApiError(400, 'No JSON body: send one, with the header "Content-Type: application/json"')
    }
    return request.body
  }
}
