/** `import`: sorts usage files of any kind into the folders of their days. */
import { join } from 'node:path'
import { UsageError, parseCommandLine } from '../contract/program.ts'
import { FLOOR_DATE, lastCompletedDay } from '../contract/calendar.ts'
import { pluralize } from '../contract/terminal.ts'
import { explained } from '../errors.ts'
import { importFile } from '../sources/import.ts'
import type { ImportedPart } from '../sources/import.ts'
import { withMemoryDatabase } from '../duckdb/memory-database.ts'
import { execute } from '../duckdb/statements.ts'
import { JSON_OPTION, printResult } from './command.ts'
import type { Command, Dependencies } from './command.ts'

type Imported = { readonly file: string; readonly parts: readonly ImportedPart[] }

export const importCommand: Command = {
  usage: 'import FILE... [--dry-run] [--json]',
  summary:
    'sorts usage files (Parquet, Arrow, NDJSON, CSV) into raw/usage/date=YYYY-MM-DD/ by the UTC day of ts; the same file twice is there once',
  prepare(args) {
    const { values, positionals } = parseCommandLine({
      args,
      allowPositionals: true,
      options: { ...JSON_OPTION, 'dry-run': { type: 'boolean', default: false } },
    })
    if (positionals.length === 0) throw new UsageError('import takes one or more files')
    const dryRun = values['dry-run']
    return async (dependencies) => {
      const imported: Imported[] = []
      try {
        for (const file of positionals) imported.push(await importOne(dependencies, file, dryRun))
      } finally {
        // A file that cannot be taken ends the command; those before it are told all the same.
        const lines = imported.flatMap((each) => describe(each, dryRun, lastCompletedDay(dependencies.now())))
        if (imported.length > 0) printResult(dependencies, values.json, { imported, dry_run: dryRun }, lines)
      }
    }
  },
}

async function importOne({ config }: Dependencies, file: string, dryRun: boolean): Promise<Imported> {
  const { dataDir } = config
  try {
    const parts = await withMemoryDatabase(config, async (connection) => {
      await execute(connection, 'load/values.sql')
      return await importFile(connection, file, { rawFolder: join(dataDir, 'raw'), dryRun })
    })
    return { file, parts }
  } catch (error) {
    throw explained(error, dataDir)
  }
}

function describe({ file, parts }: Imported, dryRun: boolean, lastDay: string): string[] {
  const rows = parts.reduce((sum, part) => sum + part.rows, 0)
  return [
    `${file}: ${pluralize(rows, 'row')} of ${pluralize(parts.length, 'day')} ${dryRun ? 'to import' : 'imported'}`,
    ...parts.map((part) => `  ${part.name}: ${pluralize(part.rows, 'row')}${remark(part, lastDay)}`),
  ]
}

function remark({ day, known }: ImportedPart, lastDay: string): string {
  if (known) return ', there already'
  if (day < FLOOR_DATE) return ', before the first day of the dataset: passed over by runs'
  return day > lastDay ? ', a day that is not over yet: read once it is' : ''
}
