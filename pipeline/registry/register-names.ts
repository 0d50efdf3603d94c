/**
 * Registers apps that usage names by an address or a name, as rows of raw/apps/by-name.ndjson (CONTRACT 7). The account that
 * named an app first decides its title and tags; NEW_APPS decides whether it is published, until an operator decides
 * otherwise.
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { NAMED_PREFIX, cleanName, type NewAppVisibility } from '../contract/app-identity.ts'
import { SUBCATEGORIES } from '../contract/taxonomy.ts'
import { listValue } from '../duckdb/sql-values.ts'
import { execute, readRows } from '../duckdb/statements.ts'
import { pluralize, printable } from '../program/terminal.ts'
import { writeInOneStep } from '../snapshot/durable-file.ts'
import type { Run } from '../stages/stage.ts'

/** The file of these rows, below raw/. */
export const NAMES_FILE = join('apps', 'by-name.ndjson')

/** Subcategories that an app may claim by itself. */
const MOST_TAGS = 10

const newRow = z.object({
  app_id: z.string().transform(Number),
  identity: z.string(),
  app_name: z.string(),
  title: z.string().nullable(),
  categories: z.array(z.string().nullable()).nullable(),
  named_at: z.string(),
  day: z.string(),
  account_id: z.string().nullable(),
  is_over_limit: z.boolean(),
})
type NewApp = z.infer<typeof newRow>

/**
 * Appends the apps of the table `app_names` that have usage but no row in the decoded registry.
 * @returns whether there are new rows to read.
 */
export async function registerNames({ connection, rawFolder, config, progress }: Run): Promise<boolean> {
  const apps = await readRows(connection, 'resolve.sql#new-names', newRow, {
    limit: config.newAppsPerAccount,
  })
  const accepted = apps.filter(({ is_over_limit }) => !is_over_limit)
  const declined = apps.filter(({ is_over_limit }) => is_over_limit)
  if (accepted.length > 0) appendRows(rawFolder, accepted, config.newApps)
  if (declined.length > 0) {
    const ids = listValue(declined.map(({ app_id }) => String(app_id)))
    await execute(connection, 'resolve.sql#decline-names', { ids })
  }
  for (const text of describeDeclined(declined, config.newAppsPerAccount)) progress.note(text)
  return accepted.length > 0
}

/** A text for each account and day. The account stays private, as everything that a run notes. */
function describeDeclined(declined: readonly NewApp[], limit: number): string[] {
  const groups = Map.groupBy(
    declined,
    ({ day, account_id }) => `${day}: account ${printable(account_id ?? '')}`,
  )
  return Array.from(
    groups,
    ([place, apps]) =>
      `${place} named ${pluralize(apps.length, 'new app')} beyond the ${limit} that an account may name on a day ` +
      '(NEW_APPS_PER_ACCOUNT); they rank nobody unless raw/apps registers them',
  )
}

function appendRows(rawFolder: string, apps: readonly NewApp[], visibility: NewAppVisibility): void {
  const lines = apps.map((app) => `${JSON.stringify(registryRow(app, visibility))}\n`)
  const path = join(rawFolder, NAMES_FILE)
  mkdirSync(dirname(path), { recursive: true })
  const before = existsSync(path) ? readFileSync(path, 'utf8') : ''
  writeInOneStep(path, `${before}${lines.join('')}`)
}

function registryRow(app: NewApp, visibility: NewAppVisibility): object {
  const { app_id, identity, app_name, title, categories, named_at, account_id } = app
  return {
    app_id,
    // An app without an address is its name.
    app_name: (identity.startsWith(NAMED_PREFIX) ? '' : cleanName(title ?? '')) || app_name,
    visibility,
    subcategories: SUBCATEGORIES.filter((known) => categories?.includes(known)).slice(0, MOST_TAGS),
    alias_of: null,
    updated_at: named_at,
    referer: identity,
    registered_at: named_at,
    account_id,
  }
}
