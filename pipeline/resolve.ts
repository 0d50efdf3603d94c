/** Stage 2: reads the app registry and finds for every app where its usage counts and whether it is public. */
import { z } from 'zod'
import { SUBCATEGORIES } from './contract.ts'
import { DataError } from './errors.ts'
import type { Columns } from './sources/columns.ts'
import { listRegistryFiles } from './sources/drop-folder.ts'
import { createStagingTable, stageFile } from './sources/staging.ts'
import type { Run, StageResult } from './stage.ts'
import { countSchema, execute, listValue, readRow, readRows, transaction } from './warehouse.ts'

/** The columns of the registry (CONTRACT 7). */
const REGISTRY_COLUMNS: Columns = {
  required: ['app_id', 'visibility', 'updated_at'],
  optional: ['app_name', 'subcategories', 'alias_of'],
}

/** Faults shown in the message; a broken file may have thousands. */
const FAULTS_SHOWN = 20

const faultRow = z.object({ file: z.string(), row: z.int(), reason: z.string() })
const aliasFaultRow = z.object({ fault: z.string() })
const totalsRow = z.object({
  apps_registered: countSchema,
  aliases: countSchema,
  apps_public: countSchema,
  apps_unregistered: countSchema,
  requests_unregistered: countSchema,
  tokens_unregistered: z.string(),
  tokens_hidden: z.string(),
  tokens_published: z.string(),
})
const unregisteredRow = z.object({ app_id: z.string(), requests: z.string(), tokens: z.string() })

/**
 * Reads the registry anew and resolves every alias.
 * @throws DataError that names file and row of a broken entry, or the ids of a broken alias chain.
 */
export async function resolve(run: Run): Promise<StageResult> {
  await stageRegistry(run)
  await transaction(run.connection, async () => {
    await execute(run.connection, 'resolve/registry.sql')
    await refuseBrokenRows(run)
    await execute(run.connection, 'resolve/aliases.sql')
    await refuseBrokenAliases(run)
  })
  await execute(run.connection, 'resolve/usage.sql')
  const totals = await readRow(run.connection, 'resolve/totals.sql', totalsRow)
  if (totals.apps_registered === 0)
    throw new DataError(`There is no app in the registry, ${run.rawFolder}/apps`)
  const unregistered = await readRows(run.connection, 'resolve/unregistered.sql', unregisteredRow)
  // They would stay in memory while the stages after this one need it.
  await run.connection.run(
    'DROP TABLE app_usage; DROP TABLE staged; DROP TABLE registry_rows; DROP TABLE walks',
  )
  const { tokens_hidden, tokens_unregistered, requests_unregistered, ...facts } = totals
  return {
    summary:
      `${totals.apps_registered} apps registered, ${totals.aliases} aliases, ${totals.apps_public} public; ` +
      `${totals.apps_unregistered} with usage are not registered`,
    facts,
    // With a single hidden app, the total of the hidden ones would be that app's traffic.
    privateFacts: { tokens_hidden, tokens_unregistered, requests_unregistered, unregistered },
  }
}

async function stageRegistry(run: Run): Promise<void> {
  const files = listRegistryFiles(run.rawFolder)
  if (files.length === 0) {
    throw new DataError(
      `There is no app registry: put a file with app_id, app_name, visibility and updated_at under ${run.rawFolder}/apps`,
    )
  }
  await createStagingTable(run.connection, REGISTRY_COLUMNS)
  for (const file of files) await stageFile(run.connection, file, REGISTRY_COLUMNS)
}

async function refuseBrokenRows(run: Run): Promise<void> {
  const faults = await readRows(run.connection, 'resolve/faults.sql', faultRow, {
    subcategories: listValue(SUBCATEGORIES),
  })
  refuse(
    'The app registry has broken rows; correct them, or append a newer row for the app',
    faults.map(({ file, row: line, reason }) => `${file}, row ${line}: ${reason}`),
  )
}

async function refuseBrokenAliases(run: Run): Promise<void> {
  const faults = await readRows(run.connection, 'resolve/alias-faults.sql', aliasFaultRow)
  refuse(
    'The app registry has broken aliases; append a newer row that corrects alias_of',
    faults.map(({ fault }) => fault),
  )
}

function refuse(problem: string, faults: readonly string[]): void {
  if (faults.length === 0) return
  const shown = faults.slice(0, FAULTS_SHOWN).map((fault) => `\n  ${fault}`)
  const more = faults.length > FAULTS_SHOWN ? `\n  and ${faults.length - FAULTS_SHOWN} more` : ''
  throw new DataError(`${problem}:${shown.join('')}${more}`)
}
