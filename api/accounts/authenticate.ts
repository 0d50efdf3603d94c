/** Bearer authentication (CONTRACT 2). Each 401 names the fault of the sent credentials, never valid ones. */
import type { Call, Clock } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import { isKeyForm, type KeyKind } from './credentials.ts'
import type { KeyFinder } from './key-store.ts'

/** The keys that a route accepts: none needed, any valid one, or one kind. */
export type Access = 'open' | 'any' | KeyKind

/**
 * Accepts callers with a suitable key and notes who they are.
 * @throws {ApiError} 401 for all others.
 */
export async function authenticate(
  { findKey, clock }: { readonly findKey: KeyFinder; readonly clock: Clock },
  access: Exclude<Access, 'open'>,
  { request, reply }: Call,
): Promise<void> {
  const key = await findKey(tokenOf(request.headersDistinct['authorization']))
  if (key === undefined) throw unauthorized('Unknown key')
  if (key.revoked_at !== null) throw unauthorized('This key was revoked')
  if (key.expires_at !== null && key.expires_at <= clock().toISOString())
    throw unauthorized(`This key expired at ${key.expires_at}`)
  // Noted before the check of the kind: the caller is known even if its key is of the wrong kind.
  reply.locals.caller = { accountId: key.account_id, keyId: key.id, kind: key.kind, limits: key }
  if (access !== 'any' && key.kind !== access)
    throw unauthorized(`This path needs a key of kind ${access}; the one sent is of kind ${key.kind}`)
}

const BEARER = /^bearer +(\S+) *$/i

function tokenOf(headers: readonly string[] = []): string {
  const [header, ...others] = new Set(headers)
  if (header === undefined)
    throw unauthorized('No credentials: send the header "Authorization: Bearer <API_KEY>"')
  if (others.length > 0)
    throw unauthorized('There are several Authorization headers with different values: send one')
  const token = BEARER.exec(header)?.[1]
  if (token === undefined)
    throw unauthorized('Malformed Authorization header: it must read "Bearer <API_KEY>"')
  if (!isKeyForm(token)) throw unauthorized('Malformed key: send a key of this service')
  return token
}

function unauthorized(message: string): ApiError {
  return new ApiError(401, message, { headers: { 'WWW-Authenticate': 'Bearer' } })
}
