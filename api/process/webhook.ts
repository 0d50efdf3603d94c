/** Sends notices to the program behind NOTICE_WEBHOOK. */
import { sendOverHttp } from '../../pipeline/program/webhook.ts'
import type { Log } from './log.ts'

/** Sends a notice; never rejects, since nothing may depend on it. */
export type Notify = (notice: Readonly<Record<string, unknown>>) => Promise<void>

/** Sends notices to `address` as JSON; drops them without an address. */
export function createWebhook(address: string | undefined, log: Log): Notify {
  return async (notice) => {
    if (address === undefined) return
    await sendOverHttp(address, notice).catch((error: unknown) =>
      // The address may hold a secret, but the error does not quote it.
      log.error({ err: error, event: notice['event'] }, 'a notice could not be sent'),
    )
  }
}
