/** Resolves the texts by which rows of usage and the registry name apps, in DuckDB. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { appNamed } from '../contract/app-identity.ts'
import { withAppender } from '../duckdb/statements.ts'
import { DataError } from '../errors.ts'

/** A text that names an app, behind a character: DuckDB's client drops a byte order mark at the beginning of a text. */
export const appTextRow = z.object({ app: z.string() }).transform(({ app }) => app.slice(1))

/**
 * Creates the temporary table `named_apps`: the app of each text, and whether the text is the first that names it. Texts
 * that identify no app are left out.
 * @throws DataError if two apps have the same id by chance.
 */
export async function nameApps(connection: DuckDBConnection, texts: readonly string[]): Promise<void> {
  const columns = 'text VARCHAR, app_id BIGINT, identity VARCHAR, app_name VARCHAR, is_first BOOLEAN'
  await connection.run(`CREATE OR REPLACE TEMP TABLE named_apps (${columns})`)
  const identities = new Map<number, string>()
  await withAppender(connection, 'named_apps', async (appender) => {
    for (const text of texts) {
      const app = appNamed(text)
      if (app === undefined) continue
      const { app_id, identity, app_name } = app
      const owner = identities.get(app_id)
      if (owner !== undefined && owner !== identity) {
        throw new DataError(
          `The apps ${owner} and ${identity} have the same id by chance, ${app_id}. Give one of them an app_id below 1000000000`,
        )
      }
      appender.appendVarchar(text)
      appender.appendBigInt(BigInt(app_id))
      appender.appendVarchar(identity)
      appender.appendVarchar(app_name)
      appender.appendBoolean(owner === undefined)
      appender.endRow()
      identities.set(app_id, identity)
    }
  })
}
