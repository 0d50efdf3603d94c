/** The stage resolve: reads the app registry and finds each app's canonical app and visibility. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { UNATTRIBUTED_APP_ID } from '../contract/dataset.ts'
import { execute, readRow, readRows, returnMemory, transaction } from '../duckdb/statements.ts'
import { DataError } from '../errors.ts'
import { firstFew, pluralize } from '../program/terminal.ts'
import { NAMES_FILE, registerNames } from '../registry/register-names.ts'
import {
  decodeRegistry,
  findViolations,
  resolveAliases,
  stageAgain,
  stageRegistry,
} from '../registry/registry.ts'
import type { Run, StageResult } from './stage.ts'

/** Violations in the message; a broken file may have thousands. */
const VIOLATIONS_SHOWN = 20

/** Most rows, or days, that a kind of warning names. */
const WARNED = 5

const unrankedRow = z.object({ day: z.string(), unranked: z.string(), tokens: z.string() })

/** Further totals are facts of the report, as they are. */
const reportRow = z.looseObject({
  apps_registered: z.number(),
  aliases: z.number(),
  apps_public: z.number(),
  apps_unregistered: z.number(),
  tokens_published: z.string(),
  dated_ahead: z.array(z.string()),
  not_published: z.looseObject({ requests_unattributed: z.number() }),
})
type Report = z.infer<typeof reportRow>

/**
 * Reads the registry again and resolves every alias.
 * @throws DataError with file and row of a broken entry, or with the ids of a broken alias chain.
 */
export async function resolve(run: Run): Promise<StageResult> {
  const { connection, rawFolder } = run
  const files = await stageRegistry(connection, rawFolder)
  await transaction(connection, async () => {
    await decode(connection)
    if (await registerNames(run)) {
      await stageAgain(connection, rawFolder, NAMES_FILE)
      await decode(connection)
    } else if (files === 0) {
      throw new DataError(
        `There is no app registry: put a file with app_id, app_name, visibility and updated_at under ${rawFolder}/apps`,
      )
    }
    refuse(
      'The app registry has broken aliases; append a newer row that corrects alias_of',
      await resolveAliases(connection),
    )
  })
  await execute(connection, 'resolve.sql#usage')
  await warnOfUnranked(run)
  const result = await summarise(run)
  // Frees memory for later stages; the checks still query app_usage.
  await connection.run('DROP TABLE staged; DROP TABLE registry_rows; DROP TABLE known_apps')
  await returnMemory(connection)
  return result
}

/** Decodes the staged registry, with the names of apps that it has under other ids. */
async function decode(connection: DuckDBConnection): Promise<void> {
  await decodeRegistry(connection)
  refuse(
    'The app registry has broken rows; correct them, or append a newer row for the app',
    await findViolations(connection),
  )
  await execute(connection, 'resolve.sql#name-aliases')
}

async function summarise({ connection, rawFolder, progress }: Run): Promise<StageResult> {
  const parameters = { unattributed: UNATTRIBUTED_APP_ID }
  const report = await readRow(connection, 'resolve.sql#totals', reportRow, parameters)
  const { not_published, dated_ahead, ...facts } = report
  if (facts.apps_registered === 0) throw new DataError(`There is no app in the registry, ${rawFolder}/apps`)
  if (dated_ahead.length > 0) progress.note(describeAhead(dated_ahead))
  if (BigInt(facts.tokens_published) === 0n) progress.note(describeNobody(report))
  return {
    summary:
      `${pluralize(facts.apps_registered, 'app')} registered, ${facts.aliases} of them aliases, ${facts.apps_public} public; ` +
      `${pluralize(facts.apps_unregistered, 'app')} with usage not registered; ` +
      `${pluralize(not_published.requests_unattributed, 'request')} without an app`,
    facts,
    // With a single hidden app, the total of hidden apps would reveal that app's traffic.
    privateFacts: not_published,
  }
}

/** A warning, since an empty ranking would look like a success. */
function describeNobody({ apps_public, apps_registered, apps_unregistered }: Report): string {
  return (
    `WARNING: NO APP IS RANKED. ${apps_public} of ${pluralize(apps_registered, 'app')} in the registry are public, and ` +
    `${pluralize(apps_unregistered, 'app')} with usage are not registered. Compare app_id in raw/usage and raw/apps; ` +
    'npm run apps -- list shows the registry, npm run apps -- show ID makes an app public'
  )
}

function describeAhead(rows: readonly string[]): string {
  return (
    'Warning: registry rows that are dated after this run outrank newer rows until then: ' +
    `${firstFew(rows, WARNED).join('; ')}. Correct updated_at`
  )
}

/** A warning, since a misspelt name or a lost column would otherwise go unnoticed. */
async function warnOfUnranked({ connection, progress }: Run): Promise<void> {
  const days = await readRows(connection, 'resolve.sql#unranked-days', unrankedRow)
  const notes = days.map(
    ({ day, unranked, tokens }) =>
      `${day}: ${unranked} of ${tokens} tokens name no app, or one that is not registered; they rank nobody`,
  )
  for (const note of firstFew(notes, WARNED)) progress.note(note)
}

function refuse(problem: string, violations: readonly string[]): void {
  if (violations.length === 0) return
  throw new DataError([`${problem}:`, ...firstFew(violations, VIOLATIONS_SHOWN)].join('\n  '))
}
