/** The token of a directory: read or requested for each sync, never stored. */
import { readFileSync, statSync } from 'node:fs'
import { isObject } from '../untrusted/json.ts'
import type { Connection } from './connections.ts'
import { SyncFailure } from './failures.ts'

export type Environment = Readonly<Record<string, string | undefined>>

const OTHERS = 0o077
const SECRET_FORM = /^[\x21-\x7e]+$/

/**
 * The token, or the secret of the OAuth client, that a connection names.
 * @throws {SyncFailure} `token_unavailable`; the message has the remedy and never the secret.
 */
export function readSecret({ kind, source }: Connection['token'], environment: Environment): string {
  const secret = (kind === 'env' ? environment[source] : readSecretFile(source))?.trim()
  const place = kind === 'env' ? `environment variable ${source}` : `file "${source}"`
  if (secret === undefined || secret === '') {
    throw new SyncFailure('token_unavailable', `The ${place} holds no token`)
  }
  // Anything else is invalid in a header, and most likely the wrong file.
  if (!SECRET_FORM.test(secret)) {
    throw new SyncFailure('token_unavailable', `The ${place} holds more than a token: one word is expected`)
  }
  return secret
}

function readSecretFile(path: string): string {
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

/** A request for a token with client credentials (RFC 6749, 4.4), by one of two ways to authenticate (2.3.1). */
export function tokenRequest(clientId: string, secret: string, way: 'header' | 'body') {
  const form = new URLSearchParams({ grant_type: 'client_credentials' })
  const headers: Record<string, string> = { 'Content-Type': 'application/x-www-form-urlencoded' }
  if (way === 'body') {
    form.set('client_id', clientId)
    form.set('client_secret', secret)
  } else {
    const credentials = `${encodeURIComponent(clientId)}:${encodeURIComponent(secret)}`
    headers['Authorization'] = `Basic ${Buffer.from(credentials).toString('base64')}`
  }
  return { method: 'POST', headers, body: form.toString() }
}

/**
 * The token in a token reply (RFC 6749, 5.1).
 * @throws {SyncFailure} `token_refused` if it has none.
 */
export function readTokenReply(status: number, body: unknown): string {
  const token = isObject(body) ? body['access_token'] : undefined
  if (status === 200 && typeof token === 'string' && SECRET_FORM.test(token)) return token
  const reason = isObject(body) ? KNOWN_ERRORS.find((known) => known === body['error']) : undefined
  const detail = reason === undefined ? '' : ` (${reason})`
  throw new SyncFailure('token_refused', `the token address answered with status ${status}${detail}`)
}

/** Errors of RFC 6749, 5.2. Others are not repeated in messages. */
const KNOWN_ERRORS =
  'invalid_request invalid_client invalid_grant unauthorized_client unsupported_grant_type invalid_scope'.split(
    ' ',
  )
