/**
 * Entry of `npm run schedule`: starts the nightly run at the times of NIGHTLY_SCHEDULE (UTC), each run as its own process,
 * never two at a time. At its start it also makes up for a missed night: a run publishes every completed day that is
 * not published yet and does nothing otherwise.
 */
import './program/runtime.js'
import { schedule } from 'node-cron'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { readConfig, refuseWithoutInput, type Config } from './config.ts'
import { utcDay, wholeSeconds } from './contract/calendar.ts'
import { EXIT_LOCKED, messageOf } from './errors.ts'
import { onStopSignal, programOf, runAsProcess } from './program/program.ts'
import { EXIT_USAGE, note } from './program/terminal.ts'
import { recordEnd } from './run-end.ts'

const NIGHTLY = fileURLToPath(new URL('nightly.ts', import.meta.url))

/** Pause until a run that met a held lock, or was killed, is tried again. */
const RETRY_MINUTES = 5

/** Runs a command of `npm run nightly` as a process; resolves to its exit code, or the signal that killed it. */
export type RunProcess = (...args: readonly string[]) => Promise<number | string>

function report(text: string): void {
  note(`schedule: ${text}`)
}

/** The function that does one run: not two at a time, again while the lock is held, and a verification once a day. */
export function createRun(config: Config, runProcess: RunProcess): () => Promise<void> {
  let isRunning = false
  let retry: NodeJS.Timeout | undefined
  let verifiedOn = ''

  async function runOnce(): Promise<void> {
    if (isRunning) return report('the last run is still under way; this one is skipped')
    isRunning = true
    clearTimeout(retry)
    try {
      const end = await started('run')
      if (end === EXIT_LOCKED || typeof end === 'string') await tryAgain(end)
      const today = utcDay(new Date())
      if (verifiedOn !== today) {
        verifiedOn = today
        await started('verify', '--all')
      }
    } catch (error) {
      report(`the run could not be started: ${messageOf(error)}`)
    } finally {
      isRunning = false
    }
  }

  async function started(...args: readonly [name: string, ...options: string[]]): Promise<number | string> {
    const end = await runProcess(...args)
    if (end !== 0)
      report(`nightly ${args[0]} ended with ${typeof end === 'string' ? end : `exit code ${end}`}`)
    return end
  }

  /** A run that did not begin, or was killed, cannot record its end itself. */
  async function tryAgain(end: number | string): Promise<void> {
    retry = setTimeout(() => void runOnce(), RETRY_MINUTES * 60_000)
    const reason =
      end === EXIT_LOCKED ? 'Another process held the lock when the run was due' : `The run ended with ${end}`
    const message = `${reason}. The schedule tries again in ${RETRY_MINUTES} minutes`
    const late = { finished_at: wholeSeconds(new Date()), outcome: 'late', snapshot: null, message } as const
    await recordEnd({ config, progress: { note: report } }, late)
  }

  return runOnce
}

const scheduled = programOf('npm run schedule', {
  summary:
    'starts the nightly run on schedule and, unless --no-catch-up is given, once right away. The settings are those of ' +
    'npm run nightly, NIGHTLY_SCHEDULE among them',
  options: {
    'catch-up': z
      .boolean()
      .default(true)
      .describe('makes up for a missed night at the start; --no-catch-up skips that'),
  },
  async work({ environment }, options) {
    const config = readConfig(environment)
    refuseWithoutInput(config)
    const stopping = new AbortController()
    const run = createRun(config, async (...args) => {
      const child = spawn(process.execPath, [NIGHTLY, ...args], { stdio: ['ignore', 2, 2] })
      const stop = () => child.kill('SIGTERM')
      stopping.signal.addEventListener('abort', stop)
      await once(child, 'exit')
      stopping.signal.removeEventListener('abort', stop)
      return child.exitCode ?? child.signalCode ?? EXIT_USAGE
    })
    const task = schedule(config.schedule, run, { timezone: 'UTC' })
    // The machine slept, or was busy, at the time of a run.
    task.on('execution:missed', () => run())
    onStopSignal(() => stopping.abort())
    // If another program kills the one that started this one, even by SIGKILL, this exit handler sees it.
    if (process.channel) process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
    report(`the next nightly run is at ${task.getNextRun()?.toISOString() ?? 'no time'}`)
    if (options['catch-up']) await run()
  },
})

if (import.meta.main) await runAsProcess((line) => scheduled({ ...line, note: report }))
