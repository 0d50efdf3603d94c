/** Notices to the program that an operator named in NOTICE_WEBHOOK. */
import { sendOverHttp } from '../../pipeline/contract/webhook.ts'
import type { Log } from './log.ts'

/** Sends a notice; never rejects, since nothing may depend on it. */
export type Notify = (notice: Readonly<Record<string, unknown>>) => Promise<void>

/** Sends notices to `address` as JSON; without an address they go nowhere. */
export function createWebhook(address: string | undefined, log: Log): Notify {
  return async (notice) => {
    if (address === undefined) return
    await sendOverHttp(address, notice).catch((error: unknown) =>
      // The address may hold a secret, which the error of a failed request does not quote.
      log.error({ err: error, event: notice['event'] }, 'a notice could not be sent'),
    )
  }
}
