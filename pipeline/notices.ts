/**
 * Reports how a run ended: a webhook when an operator should look, a ping after success for a dead-man's switch.
 * A notice never fails a run.
 */
import { z } from 'zod'
import { ProgramError } from './program/program.ts'
import type { Send } from './program/webhook.ts'
import type { Config } from './config.ts'
import { BlockedError, messageOf } from './errors.ts'
import type { Progress } from './terminal/progress.ts'
import type { Report } from './run.ts'

/** Reasons to look: no new snapshot, changed history, a late run, missing data, or a damaged published file. */
export type Notice = {
  readonly event: 'failed' | 'blocked' | 'restated' | 'late' | 'broken'
  readonly message: string
  readonly snapshot: string | null
}

const rankFacts = z.object({ data_through: z.string(), days_restated: z.number() })

/** The notices after a run that finished. */
export function noticesOf({ snapshot, last_day, stages }: Report): Notice[] {
  const { data_through, days_restated } = rankFacts.parse(stages.find(({ stage }) => stage === 'rank'))
  const notices: Notice[] = []
  if (days_restated > 0) {
    const message = `Days published before that have new figures: ${days_restated}`
    notices.push({ event: 'restated', message, snapshot })
  }
  if (data_through < last_day) {
    const message = `The data ends on ${data_through}, the last completed day is ${last_day}`
    notices.push({ event: 'late', message, snapshot })
  }
  return notices
}

/** The notice of a run that failed or was blocked. */
export function failureNotice(error: unknown): Notice & { readonly event: 'failed' | 'blocked' } {
  const message = error instanceof ProgramError ? messageOf(error) : `The run crashed: ${messageOf(error)}`
  return { event: error instanceof BlockedError ? 'blocked' : 'failed', message, snapshot: null }
}

/** The cause behind a `fetch failed`, such as ` (ECONNREFUSED)`. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : ''
}

/** Sends the notices to the webhook, and the ping when `well`; reports to the operator what could not be sent. */
export async function sendNotices(
  { webhook, successPing, publisher }: Config,
  notices: readonly Notice[],
  {
    well,
    send,
    progress,
  }: { readonly well: boolean; readonly send: Send; readonly progress: Pick<Progress, 'note'> },
): Promise<void> {
  const attempt = async (what: string, url: string, body?: unknown) => {
    try {
      await send(url, body)
    } catch (error) {
      // The address may hold a secret, so the message leaves it out.
      progress.note(`The ${what} could not be sent: ${messageOf(error)}${causeOf(error)}`)
    }
  }
  if (webhook !== undefined) {
    for (const notice of notices) await attempt(`notice "${notice.event}"`, webhook, { ...notice, publisher })
  }
  if (successPing !== undefined && well) await attempt('success ping', successPing)
}
