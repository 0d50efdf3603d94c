/** Sends notices over HTTP to the addresses of an operator. */
import { setTimeout as sleep } from 'node:timers/promises'

const ATTEMPTS = 3
const TIMEOUT_MS = 10_000
const FIRST_PAUSE_MS = 1_000

/**
 * POSTs a body as JSON, or sends a GET without a body; tries three times until the receiver accepts it.
 * @param address may hold a user and a password, which are sent as a header: fetch refuses such an address.
 * @throws an error that names the host alone, since an address may hold a secret.
 */
export async function sendOverHttp(address: string, body?: unknown): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await sendOnce(address, body)
    } catch (error) {
      if (attempt === ATTEMPTS)
        throw new Error(`${new URL(address).host}: ${failureReason(error)}`, { cause: error })
      await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1))
    }
  }
}

async function sendOnce(address: string, body: unknown): Promise<void> {
  const url = new URL(address)
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  url.username = ''
  url.password = ''
  const response = await fetch(url, {
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: {
      ...(credentials !== ':' && { Authorization: basicAuthorization(credentials) }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  })
  // An unread body would keep the process alive.
  await response.body?.cancel()
  if (!response.ok) throw new Error(`HTTP status ${response.status}`)
}

/** The value of the header Authorization for `user:password`, in UTF-8 (RFC 7617). */
export function basicAuthorization(credentials: string): string {
  return `Basic ${Buffer.from(credentials).toString('base64')}`
}

/** Why a request failed, with the cause behind a `fetch failed`, such as ` (ECONNREFUSED)`. */
export function failureReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause, message } = error
  return cause instanceof Error && 'code' in cause ? `${message} (${String(cause.code)})` : message
}
