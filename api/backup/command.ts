/** The common part of the commands backup and restore: they take one folder and describe the backup in it. */
import { parseCommandLine, UsageError, exitCodeOf, type CommandLine } from '../../pipeline/program/program.ts'
import { pluralize, wrap } from '../../pipeline/program/terminal.ts'
import { readSettings, type Settings } from '../config.ts'
import type { Manifest } from './manifest.ts'

interface FolderProgram {
  /** The command line, with its one argument. */
  readonly call: string
  readonly text: string
}

/** Runs `work` on the given folder; resolves to the exit code. */
export function runOnFolder(
  { call, text }: FolderProgram,
  { args, environment, print, note }: CommandLine,
  work: (folder: string, settings: Settings) => Promise<void>,
): Promise<number> {
  return exitCodeOf({ note }, async () => {
    const options = { help: { type: 'boolean', short: 'h' } } as const
    const { values, positionals } = parseCommandLine(
      { args: [...args], options, allowPositionals: true },
      call,
    )
    if (values.help === true) {
      return print(
        `Usage: ${call}\n\n${wrap(text)}\n\nSettings (environment): DATA_DIR, DATABASE_URL; see api/README.md\n\n` +
          'Exit codes: 0 done, 2 rejected or failed',
      )
    }
    const [folder, ...rest] = positionals
    if (folder === undefined || rest.length > 0) throw new UsageError(`Name one folder: ${call}`)
    await work(folder, readSettings(environment))
  })
}

/** Describes the backup in a few lines: a name and a value each, separated by a tab. */
export function describeBackup({ made_at, version, current, store, files }: Manifest): string {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  return [
    `made_at\t${made_at}`,
    `version\t${version}`,
    `current\t${current ?? 'no snapshot'}`,
    `store\t${store}`,
    `size\t${pluralize(files.length, 'file')}, ${(bytes / 1e6).toFixed(1)} MB`,
  ].join('\n')
}
