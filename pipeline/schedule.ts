/**
 * Entry of `npm run schedule`: starts the nightly run at its hour (NIGHTLY_SCHEDULE, UTC), each run as a process
 * of its own, never two at a time. A night that was missed is made up for at the start, since a run publishes
 * every completed day that is not yet published and is harmless otherwise.
 */
import { createTask } from 'node-cron'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { ProgramError, parseCommandLine } from './contract/program.ts'
import { note, print } from './contract/terminal.ts'
import { onStopSignal } from './terminal/stop-signal.ts'
import { readConfig } from './config.ts'
import { messageOf, stackOf } from './errors.ts'

const NIGHTLY = fileURLToPath(new URL('nightly.ts', import.meta.url))

const HELP = `Usage: npm run schedule -- [--no-catch-up | --check]

Starts the nightly run at its hour and, unless --no-catch-up is given, once right away. With --check it starts nothing:
it checks the settings of the pipeline, and exits with 2 where one is wrong.

Settings: those of npm run nightly, NIGHTLY_SCHEDULE among them.
`

/** How often the clock is looked at: a timer that waits for the hour itself stands still while the machine sleeps. */
const LOOK_MS = 1000

let running: ChildProcess | undefined

function tell(text: string): void {
  note(`schedule: ${text}`)
}

async function runOnce(): Promise<void> {
  if (running !== undefined) return tell('the last run is still under way; this one is left out')
  const run = spawn(process.execPath, [NIGHTLY, 'run'], { stdio: ['ignore', 2, 2] })
  running = run
  try {
    await once(run, 'exit')
    if (run.exitCode !== 0) tell(`the run ended with ${run.signalCode ?? `exit code ${run.exitCode}`}`)
  } catch (error) {
    tell(`the run could not be started, the next is tried at its hour: ${messageOf(error)}`)
  } finally {
    running = undefined
  }
}

function startSchedule(expression: string): void {
  const task = createTask(expression, () => undefined, { timezone: 'UTC' })
  let [next] = task.getNextRuns(1)
  setInterval(() => {
    const isDue = next !== undefined && new Date() >= next
    // Asked for each time: a clock that was ahead may have been set back.
    ;[next] = task.getNextRuns(1)
    if (isDue) void runOnce()
  }, LOOK_MS)
  onStopSignal(() => running?.kill('SIGTERM'))
  // Started by another program: its end, even by SIGKILL, is ours.
  if (process.channel) process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  tell(`the next nightly run is at ${next?.toISOString() ?? 'no time'}`)
}

async function main(): Promise<void> {
  const { values } = parseCommandLine({
    options: {
      help: { type: 'boolean', short: 'h' },
      check: { type: 'boolean' },
      'catch-up': { type: 'boolean', default: true },
    },
    allowNegative: true,
  })
  if (values.help === true) return print(HELP.trimEnd())
  const config = readConfig(process.env)
  if (values.check === true) return
  startSchedule(config.schedule)
  if (values['catch-up']) await runOnce()
}

try {
  await main()
} catch (error) {
  tell(error instanceof ProgramError ? error.message : stackOf(error))
  process.exitCode = 2
}
