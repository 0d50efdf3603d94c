/** The token of a directory: read or requested for each sync, never stored. */
import { readFileSync, statSync } from 'node:fs'
import { isObject } from '../untrusted/json.ts'
import type { Connection } from './connections.ts'
import { SyncFailure } from './failures.ts'

export type Environment = Readonly<Record<string, string | undefined>>

const OTHERS = 0o077
const ONE_WORD = /^[\x21-\x7e]+$/

/**
 * The token, or the secret of the OAuth client, that a connection names.
 * @throws {SyncFailure} `token_unavailable`; the message has the remedy and never the secret.
 */
export function readSecret(
  { token_kind, token_source }: Pick<Connection, 'token_kind' | 'token_source'>,
  environment: Environment,
): string {
  const isFile = token_kind === 'file'
  const place = isFile ? `file "${token_source}"` : `environment variable ${token_source}`
  const secret = (isFile ? readPrivateFile(token_source) : (environment[token_source] ?? '')).trim()
  if (secret === '') throw unavailable(`The ${place} holds no token`)
  // Anything else is invalid in a header, and most likely the wrong file.
  if (ONE_WORD.test(secret)) return secret
  throw unavailable(`The ${place} holds more than a token: one word is expected`)
}

function readPrivateFile(path: string): string {
  try {
    const mode = statSync(path).mode & 0o777
    if ((mode & OTHERS) === 0) return readFileSync(path, 'utf8')
    const shown = mode.toString(8).padStart(4, '0')
    throw unavailable(`The file "${path}" has mode ${shown}, so others may read the token: chmod 0600 it`)
  } catch (error) {
    if (error instanceof SyncFailure) throw error
    throw unavailable(`The file "${path}" cannot be read: ${String(error)}`)
  }
}

function unavailable(detail: string): SyncFailure {
  return new SyncFailure('token_unavailable', detail)
}

/** A request for a token with client credentials (RFC 6749, 4.4), by one of two ways to authenticate (2.3.1). */
export function tokenRequest(clientId: string, secret: string, way: 'header' | 'body') {
  const credentials = Buffer.from(`${encodeURIComponent(clientId)}:${encodeURIComponent(secret)}`)
  const inBody = way === 'body' ? { client_id: clientId, client_secret: secret } : {}
  return {
    method: 'POST',
    headers: {
      'Content-Type': 'application/x-www-form-urlencoded',
      ...(way === 'header' && { Authorization: `Basic ${credentials.toString('base64')}` }),
    },
    body: new URLSearchParams({ grant_type: 'client_credentials', ...inBody }).toString(),
  }
}

/**
 * The token in a token reply (RFC 6749, 5.1).
 * @throws {SyncFailure} `token_refused` if it has none.
 */
export function readTokenReply({
  status,
  body,
}: {
  readonly status: number
  readonly body: unknown
}): string {
  const { access_token: token, error } = isObject(body) ? body : {}
  if (status === 200 && typeof token === 'string' && ONE_WORD.test(token)) return token
  // Only errors of RFC 6749, 5.2.
  const [reason = 'no token'] =
    /^(?:invalid|unauthorized|unsupported)_[a-z_]{1,30}$/.exec(String(error)) ?? []
  throw new SyncFailure('token_refused', `the token address answered with status ${status} (${reason})`)
}

// A shorter token is no secret: it may occur in any text.
const SHORTEST_SECRET = 8

/** Whether a text has the secret, in any JSON spelling: some writers escape HTML characters, such as the = of Base64. */
export function repeats(text: string, secret: string): boolean {
  if (secret.length < SHORTEST_SECRET) return false
  const plain = text.replaceAll(/\\(?:u([\da-f]{4})|(.))/gi, (_escape, code?: string, character = '') =>
    code === undefined ? String(character) : String.fromCharCode(Number.parseInt(code, 16)),
  )
  return plain.includes(secret)
}
