/**
 * The end of a run: one report, which is recorded and announced here alone. DATA_DIR/last-run.json has it whole; a webhook
 * is called when an operator should look, a dead-man's switch after each success. Nothing here fails a run.
 */
import { join } from 'node:path'
import { z } from 'zod'
import type { Config } from './config.ts'
import { LAST_RUN_FILE, type LastRun } from './contract/last-run.ts'
import { firstLineOf } from './errors.ts'
import { failureReason, sendOverHttp } from './program/webhook.ts'
import { writeInOneStep } from './snapshot/durable-file.ts'
import type { Progress } from './terminal/progress.ts'

/** What a run did. Durations in milliseconds. */
export type Report = LastRun & {
  /** The version of the program. */
  readonly version: string
  readonly as_of: string
  /** The last UTC day that was over when the run began. */
  readonly last_day: string
  readonly started_at: string
  readonly stages: readonly Readonly<Record<string, unknown>>[]
  /** Private facts, left out of the copy beside the snapshot. */
  readonly not_published?: Readonly<Record<string, unknown>>
}

/** Reasons to look: no new snapshot, changed history, a late run, missing data, or a damaged published file. */
type Notice = {
  readonly event: 'failed' | 'blocked' | 'restated' | 'late' | 'broken'
  readonly message: string
  readonly snapshot: string | null
}

type Outputs = {
  readonly config: Pick<Config, 'dataDir' | 'webhook' | 'successPing' | 'publisher'>
  readonly progress: Pick<Progress, 'note'>
}

/** Records how a run ended, or that it could not begin (`late`), and announces it. */
export async function recordEnd(outputs: Outputs, end: LastRun | Report): Promise<void> {
  try {
    writeInOneStep(join(outputs.config.dataDir, LAST_RUN_FILE), `${JSON.stringify(end, null, 2)}\n`)
  } catch (error) {
    outputs.progress.note(`The end of the run (${end.outcome}) could not be recorded: ${firstLineOf(error)}`)
  }
  await announceEnd(outputs, end)
}

/** Announces how a run ended. */
export async function announceEnd(outputs: Outputs, end: LastRun | Report): Promise<void> {
  for (const notice of noticesOf(end)) await sendNotice(outputs, notice)
  const { successPing } = outputs.config
  const isGood = end.outcome === 'published' || end.outcome === 'unchanged'
  if (isGood && successPing) await attempt(outputs, 'success ping', successPing)
}

/** Sends a notice to the webhook, if there is one. */
export async function sendNotice(outputs: Outputs, notice: Notice): Promise<void> {
  const { webhook, publisher } = outputs.config
  if (webhook) await attempt(outputs, `notice "${notice.event}"`, webhook, { ...notice, publisher })
}

async function attempt(
  { progress }: Outputs,
  what: string,
  ...request: Parameters<typeof sendOverHttp>
): Promise<void> {
  try {
    await sendOverHttp(...request)
  } catch (error) {
    progress.note(`The ${what} could not be sent: ${failureReason(error)}`)
  }
}

const rankFacts = z.object({ data_through: z.string(), days_restated: z.number() })

function noticesOf(end: LastRun | Report): Notice[] {
  const { outcome, snapshot, message } = end
  if (outcome === 'failed' || outcome === 'blocked' || outcome === 'late') {
    return [{ event: outcome, message: message ?? '', snapshot: null }]
  }
  if (!('stages' in end)) return []
  const { data_through, days_restated } = rankFacts.parse(end.stages.find(({ stage }) => stage === 'rank'))
  const restated = `Days published before that have new figures: ${days_restated}`
  const late = `The data ends on ${data_through}, the last completed day is ${end.last_day}`
  return [
    ...(days_restated > 0 ? [{ event: 'restated', message: restated, snapshot } as const] : []),
    ...(data_through < end.last_day ? [{ event: 'late', message: late, snapshot } as const] : []),
  ]
}
