/**
 * Entry of `npm run schedule`: starts the nightly run at the times of NIGHTLY_SCHEDULE (UTC), each run as its own process,
 * never two at a time. At its start it also makes up for a missed night: a run publishes every completed day that is
 * not published yet and does nothing otherwise.
 */
import './program/runtime.js'
import { createTask } from 'node-cron'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { ProgramError, UsageError, parseCommandLine } from './program/program.ts'
import { EXIT_USAGE, note, print } from './program/terminal.ts'
import { utcDay } from './contract/calendar.ts'
import { readVerification } from './contract/verification.ts'
import { sendOverHttp } from './program/webhook.ts'
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

Starts the nightly run on schedule and, unless --no-catch-up is given, once right away.
Settings: those of npm run nightly, NIGHTLY_SCHEDULE among them.
`

/** Interval of clock checks: one long timer would stop while the machine sleeps. */
const LOOK_MS = 1000

/** Minutes until a run that met a held lock or crashed is tried again; the last value repeats. */
const RETRY_MINUTES = [1, 2, 5, 10, 15] as const

let running: ChildProcess | undefined
let verifying: ChildProcess | undefined
let failures = 0
let retryAt: Date | undefined

function report(text: string): void {
  note(`schedule: ${text}`)
}

async function runOnce(config: Config): Promise<void> {
  if (running !== undefined) return report('the last run is still under way; this one is skipped')
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

/** Tries the run again until the next one is due, so that a held lock costs no night. */
function planRetry(): Date {
  const minutes = RETRY_MINUTES[Math.min(failures, RETRY_MINUTES.length - 1)] ?? 0
  failures += 1
  retryAt = new Date(Date.now() + minutes * 60_000)
  report(`the run is tried again at ${retryAt.toISOString()}, unless the next one is due earlier`)
  return retryAt
}

/** A run that did not begin, or was killed, cannot record its end itself. */
async function reportLate(config: Config, reason: string): Promise<void> {
  const message = `${reason}. The schedule tries again at ${planRetry().toISOString()}`
  leaveLastRun(config.dataDir, { outcome: 'late', snapshot: null, message })
  const notice = { event: 'late', message, snapshot: null } as const
  await sendNotices(config, [notice], { well: false, send: sendOverHttp, progress: { note: report } })
}

/** The lock's holder stands in the log only. */
async function lockReason(config: Config): Promise<string> {
  try {
    await underLock(config, () => undefined)
    return 'Another process held the lock when the run was due'
  } catch (error) {
    return messageOf(error)
  }
}

/** Verifies all published files once per UTC day, at the same time as runs. */
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
    // Computed once per firing, since rare ones take long to find, and again if the clock was set back.
    if (isDue || now < lookedAt) [next] = task.getNextRuns(1)
    lookedAt = now
    if (isDue) void runOnce(config)
  }, LOOK_MS)
  onStopSignal(() => {
    running?.kill('SIGTERM')
    verifying?.kill('SIGTERM')
  })
  // If another program kills a run, even by SIGKILL, this exit handler sees it.
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
  if (faults.length > 0) throw new UsageError(`the schedule does not start:\n${faults.join('\n')}`)
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
