/** Entry of `npm run nightly`: reads the command line, runs the pipeline once, sets the exit code (CONTRACT 9). */
import { z } from 'zod'
import { onStopSignal, parseCommandLine } from './command-line.ts'
import { readConfig } from './config.ts'
import type { Config } from './config.ts'
import { UsageError, isExpected, stackOf } from './errors.ts'
import { createProgress } from './progress.ts'
import type { Progress } from './progress.ts'
import { runNightly } from './run.ts'
import { placeSample } from './sample.ts'

const HELP = `Usage: npm run nightly -- [run] [options]

Loads the raw usage under DATA_DIR/raw, works out the rankings and publishes them as a new snapshot.
A run over unchanged input publishes nothing new.

Options:
  --as-of TIME    run as if it were TIME (ISO 8601, such as 2026-11-20T02:00:00Z): days up to the one before
                  count as completed, and the snapshot states this time
  --with-sample   put the bundled sample in first, if DATA_DIR holds neither a snapshot nor raw usage
  --json          print the report of the run to stdout
  --help          print this help

Settings (environment): DATA_DIR, PIPELINE_MEMORY, PUBLISHER; see README.md
Exit codes: 0 published or unchanged, 1 a check failed and nothing was published, 2 wrong usage or a crash,
75 another run is under way
`

type Arguments = {
  readonly help: boolean
  readonly json: boolean
  readonly withSample: boolean
  readonly asOf: Date | undefined
}

function readArguments(args: string[]): Arguments {
  const { values, positionals } = parseCommandLine({
    args,
    allowPositionals: true,
    options: {
      'as-of': { type: 'string' },
      'with-sample': { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const [command = 'run', ...rest] = positionals
  if (command !== 'run') throw new UsageError(`Unknown command "${command}": expected run. See --help`)
  if (rest.length > 0) throw new UsageError(`Unexpected "${rest.join(' ')}" after ${command}. See --help`)
  const asOf = values['as-of']
  return {
    help: values.help,
    json: values.json,
    withSample: values['with-sample'],
    asOf: asOf === undefined ? undefined : readTime(asOf),
  }
}

function readTime(text: string): Date {
  const time = z.iso.datetime({ offset: true }).safeParse(text)
  if (time.success) return new Date(time.data)
  throw new UsageError(`--as-of "${text}" is not a time: expected ISO 8601 such as 2026-11-20T02:00:00Z`)
}

async function run({ json, withSample, asOf }: Arguments, config: Config, progress: Progress): Promise<void> {
  if (withSample && placeSample(config.dataDir)) {
    progress.note(`DATA_DIR was empty: the bundled sample is now in ${config.dataDir}/raw`)
  }
  const report = await runNightly(config, { now: () => asOf ?? new Date(), progress })
  if (json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
}

async function main(): Promise<void> {
  const progress = createProgress(process.stderr)
  onStopSignal((signal) =>
    progress.note(`Stopped by ${signal}. What is published stays; the next run begins anew`),
  )
  try {
    const args = readArguments(process.argv.slice(2))
    if (args.help) process.stdout.write(HELP)
    else await run(args, readConfig(process.env), progress)
  } catch (error) {
    progress.note(isExpected(error) ? error.message : `The run crashed: ${stackOf(error)}`)
    process.exitCode = isExpected(error) ? error.exitCode : 2
  }
}

await main()
