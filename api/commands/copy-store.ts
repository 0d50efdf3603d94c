/** Entry point of `npm run copy-store`: copies service.sqlite into the empty database of DATABASE_URL (CONTRACT 10). */
import '../../pipeline/program/runtime.js'
import { z } from 'zod'
import { JSON_OPTION } from '../../pipeline/program/options.ts'
import { UsageError, programOf, runAsProcess } from '../../pipeline/program/program.ts'
import { printRows } from '../../pipeline/program/terminal.ts'
import { readSettings } from '../config.ts'
import { openStore } from '../store/open-store.ts'
import { insertRows, type Queries } from '../store/store.ts'

/** All tables, parents first. */
const TABLES =
  'accounts api_keys quotas scim_connections scim_sync_jobs scim_groups scim_member_lists scim_members'

const rowsSchema = z.array(z.record(z.string(), z.union([z.string(), z.number(), z.null()])))

/** Copies the store of the settings; resolves to the exit code. */
export const copyStore = programOf('npm run -s copy-store', {
  summary:
    'copies accounts, keys, limits, jobs and groups from service.sqlite in DATA_DIR into the database of DATABASE_URL, which ' +
    'must be empty, in one transaction. Stop the service first: later writes are not copied',
  options: JSON_OPTION,
  async work({ environment, print, note }, { json }) {
    const { DATA_DIR, DATABASE_URL } = readSettings(environment)
    if (DATABASE_URL === undefined)
      throw new UsageError('DATABASE_URL is not set: set it to an empty database')
    await using source = await openStore({ DATA_DIR }, { mustExist: true })
    await using target = await openStore({ DATA_DIR, DATABASE_URL })
    const copied = await target.transaction((to) =>
      Array.fromAsync(TABLES.split(' '), async (table) => [table, await copyTable(source, to, table)]),
    )
    printRows({ print, json }, ['table', 'rows'], copied)
    note('Copied: start the service with DATABASE_URL set')
  },
})

/** Copies all rows of a table; resolves to their number. */
async function copyTable(from: Queries, to: Queries, table: string): Promise<number> {
  if ((await to.query(`SELECT 1 AS found FROM ${table} LIMIT 1`)).length > 0)
    throw new UsageError(`The database of DATABASE_URL already holds ${table}: name an empty one`)
  const rows = rowsSchema.parse(await from.query(`SELECT * FROM ${table}`))
  const columns = Object.keys(rows[0] ?? {})
  const values = rows.map((row) => columns.map((column) => row[column] ?? null))
  await insertRows(to, { table, columns }, values)
  return rows.length
}

if (import.meta.main) await runAsProcess(copyStore)
