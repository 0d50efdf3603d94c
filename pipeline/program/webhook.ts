/** Sends notices over HTTP to the URLs of an operator. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Sends one request; rejects if the receiver did not accept it. */
export type Send = (url: string, body?: unknown) => Promise<void>

const ATTEMPTS = 3
const TIMEOUT_MS = 10_000
const FIRST_PAUSE_MS = 1_000

/** POSTs a body as JSON, or sends a GET without a body; tries three times. */
export const sendOverHttp: Send = async (url, body) => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await sendOnce(url, body)
    } catch (error) {
      if (attempt === ATTEMPTS) throw error
      await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1))
    }
  }
}

async function sendOnce(url: string, body: unknown): Promise<void> {
  const response = await fetch(url, {
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...(body !== undefined && {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    }),
  })
  // An unread body would keep the process alive.
  await response.body?.cancel()
  if (!response.ok) throw new Error(`HTTP status ${response.status}`)
}
