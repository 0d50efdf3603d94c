/** Notices to the program that an operator named in NOTICE_WEBHOOK. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from './log.ts'

/** Sends a notice; never rejects, since nothing may depend on it. */
export type Notify = (notice: Readonly<Record<string, unknown>>) => Promise<void>

const ATTEMPTS = 3
const TIMEOUT_MS = 10_000
const FIRST_PAUSE_MS = 1000

/** Sends notices to `address` as JSON, in three attempts; without an address they go nowhere. */
export function createWebhook(address: string | undefined, log: Log): Notify {
  if (address === undefined) return async () => undefined
  return async (notice) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await post(address, notice)
      } catch (error) {
        if (attempt === ATTEMPTS) {
          // The address may hold a secret, which the error of a failed request does not quote.
          log.error({ err: error, event: notice['event'] }, 'a notice could not be sent')
          return
        }
        await sleep(FIRST_PAUSE_MS * attempt)
      }
    }
  }
}

async function post(address: string, notice: Readonly<Record<string, unknown>>): Promise<void> {
  const response = await fetch(address, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(notice),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  // Left open, the body would hold the connection.
  await response.body?.cancel()
  if (!response.ok) throw new Error(`HTTP status ${response.status}`)
}
