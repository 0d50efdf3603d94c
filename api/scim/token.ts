/** The token of a directory, or the secret of an OAuth client: read for each sync, never stored. */
import { readFileSync, statSync } from 'node:fs'
import type { Connection } from './connections.ts'
import { SyncFailure } from './failures.ts'

export type Environment = Readonly<Record<string, string | undefined>>

// Anything else is invalid in a header, and most likely the wrong file.
export const ONE_WORD = /^[\x21-\x7e]+$/

/**
 * The token, or the secret of the OAuth client, that a connection names.
 * @throws SyncFailure `token_unavailable`; the message has the remedy and never the secret.
 */
export function readSecret({ token_kind, token_source }: Connection, environment: Environment): string {
  const isFile = token_kind === 'file'
  const place = isFile ? `file "${token_source}"` : `environment variable ${token_source}`
  const secret = (isFile ? readPrivateFile(token_source) : (environment[token_source] ?? '')).trim()
  if (ONE_WORD.test(secret)) return secret
  const found = secret === '' ? 'no token' : 'more than a token: one word is expected'
  throw new SyncFailure('token_unavailable', `The ${place} holds ${found}`)
}

function readPrivateFile(path: string): string {
  try {
    const mode = (statSync(path).mode & 0o777).toString(8)
    if (mode.endsWith('00')) return readFileSync(path, 'utf8')
    throw new Error(`it has mode 0${mode}, so others may read the token: chmod 0600 it`)
  } catch (error) {
    throw new SyncFailure('token_unavailable', `The file "${path}" cannot be used: ${String(error)}`)
  }
}

// A shorter token is no secret: it may occur in any text.
const SHORTEST_SECRET = 8

/** Whether a text has the longest part of the secret that no writer of JSON escapes, as some do the = of Base64. */
export function repeats(text: string, secret: string): boolean {
  const [longest = ''] = secret.split(/[^\w.~-]+/).toSorted((a, b) => b.length - a.length)
  return longest.length >= SHORTEST_SECRET && text.includes(longest)
}
