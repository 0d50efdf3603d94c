import type { IncomingMessage } from 'node:http'
import express, { type Request } from 'express'
import type { Reply } from '../call.ts'
import { ApiError } from '../errors.ts'
import { isDeeperThan } from '../../untrusted/json.ts'
import { shorten } from '../../untrusted/shorten.ts'
import { codeOf } from '../../process/system-errors.ts'

/** Reads the JSON body of a request, from within its handler. */
export type JsonReader = (request: Request, reply: Reply) => Promise<unknown>

/** What has some thousands of levels can be read, but not written again. */
const LEVELS_AT_MOST = 500

/**
 * A reader of bodies of at most `limit` bytes, unpacked. It rejects with what the client did wrong: 400 for a body
 * that is no JSON, damaged, nested too deeply or missing, 413 for one that is too large, 415 for an encoding nobody
 * can read.
 */
export function jsonReader(limit: number): JsonReader {
  const parse = express.json({ limit, strict: false, verify: keepLongNumbers })
  return async (request, reply) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    parse(request, reply, (error?: unknown) => (error === undefined ? resolve() : reject(told(error, limit))))
    await promise
    if (request.body === undefined) {
      throw new ApiError(400, 'No JSON body: send one, with the header "Content-Type: application/json"')
    }
    if (isDeeperThan(LEVELS_AT_MOST, request.body)) {
      throw new ApiError(
        400,
        `The body is nested too deeply: at most ${LEVELS_AT_MOST} lists and objects are allowed`,
      )
    }
    return request.body
  }
}

/** The text of bodies that may hold whole numbers of more digits than a number keeps. */
const longNumbers = new WeakMap<IncomingMessage, string>()
const LONG_NUMBER = /\d{16}/

function keepLongNumbers(request: IncomingMessage, _reply: unknown, bytes: Buffer): void {
  const text = bytes.toString()
  if (LONG_NUMBER.test(text)) longNumbers.set(request, text)
}

/** The body that a reader gave, fit to be passed on: whole numbers past 2^53 are written again as they were sent. */
export function unroundedBody(request: Request): unknown {
  const text = longNumbers.get(request)
  return text === undefined ? request.body : JSON.parse(text, unrounded)
}

function unrounded(_key: string, value: unknown, context?: { readonly source: string }): unknown {
  const isRounded = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isRounded && context !== undefined ? JSON.rawJSON(context.source) : value
}

/** The same in words that say what is allowed. */
function told(error: unknown, limit: number): unknown {
  if (!(error instanceof Error)) return error
  // What fails to unpack a body has a code of its own instead of a type.
  if (!('type' in error)) {
    if (codeOf(error) === undefined) return error
    return new ApiError(
      400,
      `The body is not in the coding that its Content-Encoding names: ${error.message}`,
    )
  }
  if (error.type === 'entity.too.large') {
    return new ApiError(413, `The body is too large: at most ${limit} bytes are allowed`)
  }
  if (error.type === 'entity.parse.failed') {
    return new ApiError(400, `The body is no valid JSON: ${error.message}`)
  }
  if (error.type === 'encoding.unsupported') {
    return new ApiError(
      415,
      `The body has an ${shorten(error.message)}; allowed: br, deflate, gzip, zstd, or none`,
    )
  }
  if (error.type === 'charset.unsupported') {
    return new ApiError(415, `The body has an ${shorten(error.message)}; allowed: utf-8`)
  }
  return error
}
