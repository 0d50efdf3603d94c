/** `import`: sorts usage files of any producer into the folders of their days. */
import { createWriteStream } from 'node:fs'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { FLOOR_DATE, lastCompletedDay } from '../contract/calendar.ts'
import { RAW_FOLDER, makeDataFolder } from '../contract/files.ts'
import { SPILL_PREFIX, withMemoryDatabase } from '../duckdb/database.ts'
import { execute } from '../duckdb/statements.ts'
import { JSON_OPTION, flag, oneOf, option } from '../program/options.ts'
import { pluralize } from '../program/terminal.ts'
import { ownPath } from '../snapshot/own-files.ts'
import type { RawFile } from '../sources/drop-folder.ts'
import {
  importFiles,
  type ImportOptions,
  type Imported,
  type ImportedPart,
} from '../sources/import/import.ts'
import { STDIN, filesNamed, inspectInput } from '../sources/import/input.ts'
import { PRODUCERS } from '../sources/import/producers.ts'
import { mergeMaps, readMap } from '../sources/import/usage-map.ts'
import { command, printResult, type Dependencies } from './command.ts'

/** Totals of one file, or of all files of a source. */
type Batch = Imported & { readonly file: string }

/** A source's name is part of a file name. */
const SOURCE = /^[a-z0-9][a-z0-9_-]{0,39}$/i

/** Share of a day's tokens without an app, in percent, that causes a warning. */
const UNNAMED_PERCENT = 5n

const PRODUCER_NAMES = Object.keys(PRODUCERS)

export const importCommand = command({
  summary:
    'sorts usage files into raw/usage/date=YYYY-MM-DD/ by the UTC day of ts. FILE may be a folder, or - for standard input. A file that was imported before is skipped',
  takes: 'FILE...',
  options: {
    from: option('PRODUCER', `reads an export of ${PRODUCER_NAMES.join(', ')}`, oneOf(PRODUCER_NAMES)),
    map: option(
      'MAP',
      'maps columns: ts=created_at,app=metadata.app,... or a JSON file; takes precedence over --from',
      z.string(),
    ),
    source: option(
      'NAME',
      'replaces earlier usage of this source on the days of these files',
      z.string().regex(SOURCE, 'Expected a name of up to 40 letters, digits, - and _'),
    ),
    'dry-run': flag('shows the first rows as decoded and totals; writes nothing'),
    ...JSON_OPTION,
  },
  async work(dependencies, { from, map, source, 'dry-run': dryRun, json }, paths) {
    const { dataDir } = dependencies.config
    const imported: Batch[] = []
    const base = from === undefined ? undefined : PRODUCERS[from]
    const columns = map === undefined ? base : mergeMaps(readMap(map), base)
    const options = { rawFolder: join(dataDir, RAW_FOLDER), dryRun, map: columns, source }
    using stdin = ownPath(dataDir, `${SPILL_PREFIX}stdin-`)
    const inspect = async (path: string) =>
      path === STDIN
        ? await inspectInput(await keepStdin(stdin.path), 'standard input')
        : await inspectInput(path)
    try {
      const files = filesNamed(paths)
      // The files of a source together replace its earlier usage.
      for (const batch of source === undefined ? files.map((file) => [file]) : [files]) {
        imported.push(await importBatch(dependencies, await Array.fromAsync(batch, inspect), options))
      }
    } finally {
      // A file that cannot be read ends the command; the files before it are reported all the same.
      const lines = imported.flatMap((each) => describe(each, dryRun, lastCompletedDay(dependencies.now())))
      if (imported.length > 0) printResult(dependencies, json, { imported, dry_run: dryRun }, lines)
    }
  },
})

/** Stores standard input in a file: some formats are read from their end. */
async function keepStdin(path: string): Promise<string> {
  makeDataFolder(dirname(path))
  await pipeline(process.stdin, createWriteStream(path))
  return path
}

async function importBatch(
  { config }: Dependencies,
  files: readonly RawFile[],
  options: ImportOptions,
): Promise<Batch> {
  return await withMemoryDatabase(config, async (connection) => {
    await execute(connection, 'values.sql')
    const imported = await importFiles(connection, files, options)
    return { file: files.map(({ name }) => name).join(', '), ...imported }
  })
}

function describe(imported: Batch, dryRun: boolean, lastDay: string): string[] {
  const { file, parts, skipped, first_rows } = imported
  const rows = parts.reduce((sum, part) => sum + part.rows, 0)
  return [
    `${file}: ${pluralize(rows, 'row')} of ${pluralize(parts.length, 'day')} ${dryRun ? 'to import' : 'imported'}` +
      (skipped === 0 ? '' : `, ${pluralize(skipped, 'row')} skipped, since they are not generations`),
    ...parts.map((part) => `  ${part.name}: ${pluralize(part.rows, 'row')}${remark(part, lastDay)}`),
    `  in all ${totalsOf(parts)}`,
    ...(first_rows.length === 0 ? [] : ['  the first rows as decoded:']),
    ...first_rows.map((row) => `    ${JSON.stringify(row)}`),
    ...parts.flatMap(warningsOf),
  ]
}

function totalsOf(parts: readonly ImportedPart[]): string {
  const sum = (name: 'requests' | 'prompt_tokens' | 'completion_tokens') =>
    parts.reduce((total, part) => total + BigInt(part[name]), 0n)
  return (
    `${pluralize(sum('requests'), 'request')}, ${pluralize(sum('prompt_tokens'), 'prompt token')}, ` +
    pluralize(sum('completion_tokens'), 'completion token')
  )
}

function remark({ day, known, replaces }: ImportedPart, lastDay: string): string {
  if (known) return ', imported before'
  if (replaces) return ', in place of what the source brought before'
  if (day < FLOOR_DATE) return ', before the first day of the dataset: never counted'
  return day > lastDay ? ', not over yet: counted when it is' : ''
}

function warningsOf(part: ImportedPart): string[] {
  const { day, may_double, rows_without_id, rows_large_parts, tokens_without_app: unnamed } = part
  const tokens = BigInt(part.prompt_tokens) + BigInt(part.completion_tokens)
  const missing = (['prompt_tokens', 'completion_tokens'] as const).filter((name) => !part[`has_${name}`])
  const warnings: readonly (readonly [boolean, string])[] = [
    [
      missing.length > 0,
      `no row has ${missing.join(' and ')}. If they are in the file, give their path with --map`,
    ],
    [
      may_double && rows_without_id > 0,
      `other files have usage of this day, and ${pluralize(rows_without_id, 'row')} here have no request_id: ` +
        'what both hold counts twice. Import with --source NAME to replace',
    ],
    [
      rows_large_parts > 0,
      'cached_tokens or reasoning_tokens are more than the count that contains them in ' +
        `${pluralize(rows_large_parts, 'row')}, and do not count there; --map prompt_tokens=PATH+PATH adds paths`,
    ],
    [
      BigInt(unnamed) * 100n > tokens * UNNAMED_PERCENT,
      `${unnamed} of ${tokens} tokens name no app, so they are not ranked`,
    ],
  ]
  return warnings.flatMap(([applies, text]) => (applies ? [`  WARNING ${day}: ${text}`] : []))
}
