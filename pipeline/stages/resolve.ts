/** The stage resolve: reads the app registry and finds each app's canonical app and visibility. */
import { z } from 'zod'
import { UNATTRIBUTED_APP_ID } from '../contract/dataset.ts'
import { pluralize, printable } from '../program/terminal.ts'
import { DataError } from '../errors.ts'
import { aliasNames, registerNames } from '../registry/register-names.ts'
import type { Declined } from '../registry/register-names.ts'
import { decodeRegistry, findViolations, resolveAliases, stageRegistry } from '../registry/registry.ts'
import type { Run, StageResult } from './stage.ts'
import { countSchema, execute, readRow, readRows, returnMemory, transaction } from '../duckdb/statements.ts'

/** Violations in the message; a broken file may have thousands. */
const VIOLATIONS_SHOWN = 20

/** Rows named in a warning. */
const ROWS_SHOWN = 5

const UNATTRIBUTED = { unattributed: UNATTRIBUTED_APP_ID }

/** Most days in the warnings. */
const DAYS_SHOWN = 5

const unrankedRow = z.object({ day: z.string(), unranked: z.string(), tokens: z.string() })
const reportRow = z.object({
  apps_registered: countSchema,
  aliases: countSchema,
  apps_public: countSchema,
  apps_unregistered: countSchema,
  requests_unregistered: countSchema,
  tokens_unregistered: z.string(),
  requests_unattributed: countSchema,
  tokens_unattributed: z.string(),
  tokens_hidden: z.string(),
  tokens_published: z.string(),
  unregistered: z.array(z.object({ app_id: z.string(), requests: z.string(), tokens: z.string() })),
  dated_ahead: z.array(z.string()),
})

/**
 * Reads the registry again and resolves every alias.
 * @throws DataError with file and row of a broken entry, or with the ids of a broken alias chain.
 */
export async function resolve(run: Run): Promise<StageResult> {
  const { config, connection, rawFolder, dependencies } = run
  const limit = config.newAppsPerAccount
  const files = await stageRegistry(connection, rawFolder)
  const registration = { rawFolder, visibility: config.newApps, limit }
  const { declined, isChanged } = await registerNames(connection, registration)
  for (const text of describeDeclined(declined, limit)) dependencies.progress.note(text)
  if (isChanged) await stageRegistry(connection, rawFolder)
  else if (files === 0) throw withoutRegistry(rawFolder)
  await transaction(run.connection, async () => {
    await decodeRegistry(run.connection)
    refuse(
      'The app registry has broken rows; correct them, or append a newer row for the app',
      await findViolations(run.connection),
    )
    await aliasNames(connection)
    refuse(
      'The app registry has broken aliases; append a newer row that corrects alias_of',
      await resolveAliases(run.connection),
    )
  })
  await execute(run.connection, 'resolve.sql#usage')
  await warnOfUnranked(run)
  const result = await summarise(run)
  // Frees memory for later stages; the checks still query app_usage.
  await run.connection.run('DROP TABLE staged; DROP TABLE registry_rows')
  await returnMemory(run.connection)
  return result
}

async function summarise({ connection, rawFolder, dependencies: { progress } }: Run): Promise<StageResult> {
  const {
    tokens_hidden,
    tokens_unregistered,
    requests_unregistered,
    requests_unattributed,
    tokens_unattributed,
    unregistered,
    dated_ahead,
    ...facts
  } = await readRow(connection, 'resolve.sql#totals', reportRow, UNATTRIBUTED)
  if (facts.apps_registered === 0) throw new DataError(`There is no app in the registry, ${rawFolder}/apps`)
  if (dated_ahead.length > 0) progress.note(describeAhead(dated_ahead))
  if (BigInt(facts.tokens_published) === 0n) progress.note(describeNobody(facts))
  return {
    summary:
      `${pluralize(facts.apps_registered, 'app')} registered, ${facts.aliases} of them aliases, ${facts.apps_public} public; ` +
      `${pluralize(facts.apps_unregistered, 'app')} with usage not registered; ` +
      `${pluralize(requests_unattributed, 'request')} without an app`,
    facts,
    // With a single hidden app, the total of hidden apps would reveal that app's traffic.
    privateFacts: {
      tokens_hidden,
      tokens_unregistered,
      requests_unregistered,
      unregistered,
      requests_unattributed,
      tokens_unattributed,
    },
  }
}

/** The account stays private, as everything that a run notes. */
function describeDeclined(declined: readonly Declined[], limit: number): string[] {
  return declined.map(
    ({ account, day, apps }) =>
      `${day}: account ${printable(account)} named ${pluralize(apps, 'new app')} beyond the ${limit} that an account ` +
      'may name on a day (NEW_APPS_PER_ACCOUNT); they rank nobody unless raw/apps registers them',
  )
}

/** A warning, since an empty ranking would look like a success. */
function describeNobody({
  apps_registered,
  apps_public,
  apps_unregistered,
}: Pick<z.infer<typeof reportRow>, 'apps_registered' | 'apps_public' | 'apps_unregistered'>): string {
  return (
    `WARNING: NO APP IS RANKED. ${apps_public} of ${pluralize(apps_registered, 'app')} in the registry are public, and ` +
    `${pluralize(apps_unregistered, 'app')} with usage are not registered. Compare app_id in raw/usage and raw/apps; ` +
    'npm run apps -- list shows the registry, npm run apps -- show ID makes an app public'
  )
}

function describeAhead(rows: readonly string[]): string {
  const more = rows.length > ROWS_SHOWN ? `, and ${rows.length - ROWS_SHOWN} more` : ''
  return (
    `Warning: ${pluralize(rows.length, 'registry row')} dated after this run outranks every later decision until then: ` +
    `${rows.slice(0, ROWS_SHOWN).join('; ')}${more}. Correct updated_at`
  )
}

/** A warning, since a misspelt name or a lost column would otherwise go unnoticed. */
async function warnOfUnranked({ connection, dependencies }: Run): Promise<void> {
  const days = await readRows(connection, 'resolve.sql#unranked-days', unrankedRow)
  for (const { day, unranked, tokens } of days.slice(0, DAYS_SHOWN)) {
    dependencies.progress.note(
      `${day}: ${unranked} of ${tokens} tokens name no app, or one that is not registered; they rank nobody`,
    )
  }
  const more = days.length - DAYS_SHOWN
  if (more > 0) dependencies.progress.note(`${pluralize(more, 'more day')} like these`)
}

function withoutRegistry(rawFolder: string): DataError {
  return new DataError(
    `There is no app registry: put a file with app_id, app_name, visibility and updated_at under ${rawFolder}/apps`,
  )
}

function refuse(problem: string, violations: readonly string[]): void {
  if (violations.length === 0) return
  const shown = violations.slice(0, VIOLATIONS_SHOWN).map((violation) => `\n  ${violation}`)
  const more =
    violations.length > VIOLATIONS_SHOWN ? `\n  and ${violations.length - VIOLATIONS_SHOWN} more` : ''
  throw new DataError(`${problem}:${shown.join('')}${more}`)
}
