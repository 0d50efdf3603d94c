/**
 * Entry of `npm run schedule`: starts the nightly run at its hour (NIGHTLY_SCHEDULE, UTC), each run as a process
 * of its own, never two at a time. A night that was missed is made up for at the start, since a run publishes
 * every completed day that is not yet published and is harmless otherwise.
 */
import './contract/runtime.js'
import { createTask } from 'node-cron'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { ProgramError, UsageError, parseCommandLine } from './contract/program.ts'
import { EXIT_USAGE, note, print } from './contract/terminal.ts'
import { utcDay } from './contract/calendar.ts'
import { readVerification } from './contract/verification.ts'
import { sendOverHttp } from './contract/webhook.ts'
import { onStopSignal } from './terminal/stop-signal.ts'
import { checkPipeline } from './check-config.ts'
import { readConfig } from './config.ts'
import type { Config } from './config.ts'
import { underLock } from './duckdb/warehouse.ts'
import { EXIT_LOCKED, messageOf, stackOf } from './errors.ts'
import { leaveLastRun } from './last-run.ts'
import { sendNotices } from './notices.ts'

const NIGHTLY = fileURLToPath(new URL('nightly.ts', import.meta.url))

const HELP = `Usage: npm run schedule -- [--no-catch-up]

Starts the nightly run at its hour and, unless --no-catch-up is given, once right away.

Settings: those of npm run nightly, NIGHTLY_SCHEDULE among them.
`

/** How often the clock is looked at: a timer that waits for the hour itself stands still while the machine sleeps. */
const LOOK_MS = 1000

/** Minutes after which a run that met a held lock or crashed is tried again: these, then the last of them each time. */
const RETRY_MINUTES = [1, 2, 5, 10, 15] as const

let running: ChildProcess | undefined
let verifying: ChildProcess | undefined
let failures = 0
let retryAt: Date | undefined

function report(text: string): void {
  note(`schedule: ${text}`)
}

async function runOnce(config: Config): Promise<void> {
  if (running !== undefined) return report('the last run is still under way; this one is left out')
  retryAt = undefined
  const run = spawn(process.execPath, [NIGHTLY, 'run'], { stdio: ['ignore', 2, 2] })
  running = run
  try {
    await once(run, 'exit')
    if (run.exitCode !== 0) report(`the run ended with ${endingOf(run)}`)
    if (run.exitCode === EXIT_USAGE) planRetry()
    else if (run.exitCode === EXIT_LOCKED) await reportLate(config, await lockReason(config))
    else if (run.signalCode !== null) await reportLate(config, `The run ended with ${endingOf(run)}`)
    else failures = 0
  } catch (error) {
    report(`the run could not be started: ${messageOf(error)}`)
    planRetry()
  } finally {
    running = undefined
  }
  await verifyDaily(config)
}

function endingOf({ signalCode, exitCode }: ChildProcess): string {
  return signalCode ?? `exit code ${exitCode}`
}

/** No night is lost to a lock that somebody held at the hour: the run is tried again until the next one is due. */
function planRetry(): Date {
  const minutes = RETRY_MINUTES[Math.min(failures, RETRY_MINUTES.length - 1)] ?? 0
  failures += 1
  retryAt = new Date(Date.now() + minutes * 60_000)
  report(`it is tried again at ${retryAt.toISOString()}, unless the next run is due before`)
  return retryAt
}

/** A run that did not begin, or was killed, leaves no word itself. */
async function reportLate(config: Config, reason: string): Promise<void> {
  const message = `${reason}. The schedule tries again at ${planRetry().toISOString()}`
  leaveLastRun(config.dataDir, { outcome: 'late', snapshot: null, message })
  const notice = { event: 'late', message, snapshot: null } as const
  await sendNotices(config, [notice], { well: false, send: sendOverHttp, progress: { note: report } })
}

/** Who holds the lock: the run has written it to the log alone. */
async function lockReason(config: Config): Promise<string> {
  try {
    await underLock(config, () => undefined)
    return 'The lock of the run was held at its hour'
  } catch (error) {
    return messageOf(error)
  }
}

/** Verifies all published files once a UTC day, beside the runs of later hours. */
async function verifyDaily({ dataDir }: Config): Promise<void> {
  const { verified_at } = readVerification(dataDir)
  if (verifying !== undefined || verified_at?.startsWith(utcDay(new Date())) === true) return
  verifying = spawn(process.execPath, [NIGHTLY, 'verify', '--all'], { stdio: ['ignore', 2, 2] })
  const verification = verifying
  try {
    await once(verification, 'exit')
    if (verification.exitCode !== 0) report(`the verification ended with ${endingOf(verification)}`)
  } catch (error) {
    report(`the verification could not be started: ${messageOf(error)}`)
  } finally {
    verifying = undefined
  }
}

function startSchedule(config: Config): void {
  const task = createTask(config.schedule, () => undefined, { timezone: 'UTC' })
  let [next] = task.getNextRuns(1)
  let lookedAt = new Date()
  setInterval(() => {
    const now = new Date()
    const isDue = (next !== undefined && now >= next) || (retryAt !== undefined && now >= retryAt)
    // Searched for once per firing, which takes a while for rare ones, and when a clock that was ahead is set back.
    if (isDue || now < lookedAt) [next] = task.getNextRuns(1)
    lookedAt = now
    if (isDue) void runOnce(config)
  }, LOOK_MS)
  onStopSignal(() => {
    running?.kill('SIGTERM')
    verifying?.kill('SIGTERM')
  })
  // Started by another program: its end, even by SIGKILL, is ours.
  if (process.channel) process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  report(`the next nightly run is at ${next?.toISOString() ?? 'no time'}`)
}

async function main(): Promise<void> {
  const { values } = parseCommandLine({
    options: {
      help: { type: 'boolean', short: 'h' },
      'catch-up': { type: 'boolean', default: true },
    },
    allowNegative: true,
  })
  if (values.help === true) return print(HELP.trimEnd())
  const { faults } = await checkPipeline(process.env)
  if (faults.length > 0) throw new UsageError(`nothing is started:\n${faults.join('\n')}`)
  const config = readConfig(process.env)
  startSchedule(config)
  if (values['catch-up']) await runOnce(config)
}

try {
  await main()
} catch (error) {
  report(error instanceof ProgramError ? error.message : stackOf(error))
  process.exitCode = 2
}
