/** Summary of an import beside its days. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { execute, readRows } from '../../duckdb/statements.ts'
import { DataError } from '../../errors.ts'
import { decodeRegistry, stageRegistry } from '../../registry/registry.ts'
import { nameApps } from '../names.ts'
import type { ImportOptions } from './import.ts'
import { USAGE_FIELDS } from './usage-fields.ts'
import type { UsageRow } from './usage-fields.ts'

const firstRow = z.record(z.enum(USAGE_FIELDS), z.string().nullable())
const appRow = z.object({ app: z.string() })
const textRow = z.object({ text: z.string() })

export type Summary = {
  /** The apps that the registry lacks, by the first text that names each. */
  readonly new_apps: readonly string[]
  /** The first rows, decoded, in a dry run. */
  readonly first_rows: readonly UsageRow[]
}

/** Computes the summary from the table `staged`, and then replaces that table by the registry. */
export async function readSummary(
  connection: DuckDBConnection,
  { dryRun, rawFolder }: ImportOptions,
): Promise<Summary> {
  const apps = await readRows(connection, 'import.sql#apps', appRow)
  const rows = dryRun ? await readRows(connection, 'import.sql#first-rows', firstRow) : []
  const texts = apps.map(({ app }) => app)
  const new_apps = texts.length === 0 ? [] : await newAmong(connection, texts, rawFolder)
  return { new_apps, first_rows: rows.map(withoutNulls) }
}

/** Apps that the registry lacks; all if the registry cannot be read, which the next run reports. */
async function newAmong(
  connection: DuckDBConnection,
  texts: readonly string[],
  rawFolder: string,
): Promise<string[]> {
  try {
    await execute(connection, 'warehouse.sql')
    await stageRegistry(connection, rawFolder)
    await decodeRegistry(connection)
  } catch (error) {
    if (error instanceof DataError) return [...texts]
    throw error
  }
  await nameApps(connection, texts)
  return (await readRows(connection, 'import.sql#new-apps', textRow)).map(({ text }) => text)
}

function withoutNulls(row: UsageRow): UsageRow {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))
}
