/** The token of a directory: read for each sync, never stored. */
import { readFileSync, statSync } from 'node:fs'
import type { Connection } from './connection-store.ts'
import { SyncFailure } from '../failures.ts'

export type Environment = Readonly<Record<string, string | undefined>>

const OTHERS = 0o077
const TOKEN_FORM = /^[\x21-\x7e]+$/

/**
 * The token that a connection names.
 * @throws {SyncFailure} `token_unavailable`; the message has the remedy and never the token.
 */
export function readToken({ kind, source }: Connection['token'], environment: Environment): string {
  const token = (kind === 'env' ? environment[source] : readTokenFile(source))?.trim()
  const place = kind === 'env' ? `environment variable ${source}` : `file "${source}"`
  if (token === undefined || token === '') {
    throw new SyncFailure('token_unavailable', `The ${place} holds no token`)
  }
  // Anything else is invalid in a header, and most likely the wrong file.
  if (!TOKEN_FORM.test(token)) {
    throw new SyncFailure('token_unavailable', `The ${place} holds more than a token: one word is expected`)
  }
  return token
}

function readTokenFile(path: string): string {
  try {
    const mode = statSync(path).mode & 0o777
    if ((mode & OTHERS) !== 0) {
      const shown = mode.toString(8).padStart(4, '0')
      throw new SyncFailure(
        'token_unavailable',
        `The file "${path}" has mode ${shown}, so others may read the token: chmod 0600 it`,
      )
    }
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof SyncFailure) throw error
    throw new SyncFailure('token_unavailable', `The file "${path}" cannot be read: ${String(error)}`)
  }
}
