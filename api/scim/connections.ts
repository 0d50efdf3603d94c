/** The directory connections of accounts, at most one each, as rows of the store. Tokens are not stored. */
import { z } from 'zod'
import type { Queries, Value } from '../store/store.ts'

/** Where a sync reads members: from the list of groups, by a request per group, or not at all. */
export const MEMBER_MODES = ['inline', 'per_group', 'off'] as const

const optional = z.string().nullable().default(null)
const flag = z.number().default(0)
/** A number that may be missing in a row too. */
const orDefault = (value: number) => z.preprocess((stored) => stored ?? value, z.number())

const settingsSchema = z.object({
  url: z.string(),
  /** Where a sync reads the token, or with `token_url` the secret of the OAuth client. */
  token_kind: z.enum(['env', 'file']),
  token_source: z.string(),
  /** Where a token is requested (RFC 6749, 4.4), and for which client. */
  token_url: optional,
  client_id: optional,
  members: z.enum(MEMBER_MODES).default('inline'),
  allow_loopback: flag,
  allow_private: flag,
  /** This many groups and members may be removed in one sync, and beyond them this percentage. */
  gate_groups: orDefault(5),
  gate_members: orDefault(50),
  gate_percent: orDefault(20),
  /** A cron expression in UTC, and its next time. */
  schedule: optional,
  next_sync_at: optional,
})

/** The connection before anything is set. */
export const NEW_CONNECTION = settingsSchema
  .omit({ url: true, token_kind: true, token_source: true })
  .parse({})

const connectionSchema = settingsSchema.extend({
  account_id: z.string(),
  account: z.string(),
  /** Changes with every `set`, so that a sync detects a changed connection. */
  updated_at: z.string(),
})

/** What an operator sets. */
export type ConnectionSettings = z.infer<typeof settingsSchema>
/** A connection; times are ISO 8601 UTC with milliseconds, flags 0 or 1. */
export type Connection = z.infer<typeof connectionSchema>

const SETTINGS = settingsSchema.keyof().options
const SELECT = `
  SELECT a.name AS account, c.account_id, c.updated_at, ${SETTINGS.map((name) => `c.${name}`).join(', ')}
  FROM scim_connections AS c JOIN accounts AS a ON a.id = c.account_id`
const PUT = `
  INSERT INTO scim_connections (account_id, updated_at, ${SETTINGS.join(', ')})
  SELECT id, $2, ${SETTINGS.map((_name, index) => `$${index + 3}`).join(', ')} FROM accounts WHERE name = $1
  ON CONFLICT (account_id) DO UPDATE SET
    updated_at = excluded.updated_at, ${SETTINGS.map((name) => `${name} = excluded.${name}`).join(', ')}
  RETURNING account_id`
const HOLD = `
  UPDATE scim_connections SET updated_at = updated_at WHERE account_id = $1 AND updated_at = $2
  RETURNING account_id`
const REMOVE = `
  DELETE FROM scim_connections WHERE account_id IN (SELECT id FROM accounts WHERE name = $1) RETURNING account_id`
const ADVANCE = `
  UPDATE scim_connections SET next_sync_at = $3 WHERE account_id = $1 AND next_sync_at = $2 RETURNING account_id`

/** Sets or replaces the connection of the account with this name; false without such an account. */
export async function putConnection(queries: Queries, account: string, settings: ConnectionSettings) {
  const values = SETTINGS.map((name) => settings[name])
  return await hasRows(queries, PUT, account, new Date().toISOString(), ...values)
}

export async function findConnection(queries: Queries, accountId: string): Promise<Connection | undefined> {
  return (await select(queries, 'WHERE c.account_id = $1', accountId))[0]
}

export async function findConnectionByName(queries: Queries, account: string) {
  return (await select(queries, 'WHERE a.name = $1', account))[0]
}

/** All connections, ordered by account name. */
export async function listConnections(queries: Queries): Promise<readonly Connection[]> {
  return await select(queries, 'ORDER BY a.name')
}

/** The connections with a due sync. */
export async function dueConnections(queries: Queries, now: Date): Promise<readonly Connection[]> {
  return await select(queries, 'WHERE c.next_sync_at <= $1 ORDER BY c.next_sync_at', now.toISOString())
}

/** Sets the next sync time; false if another process did, which then starts the sync. */
export async function advanceSchedule(queries: Queries, connection: Connection, next: Date | undefined) {
  const { account_id, next_sync_at } = connection
  return await hasRows(queries, ADVANCE, account_id, next_sync_at, next?.toISOString() ?? null)
}

/** Locks a connection until the transaction ends; false if it has changed. */
export async function holdConnection(queries: Queries, { account_id, updated_at }: Connection) {
  return await hasRows(queries, HOLD, account_id, updated_at)
}

/** Removes the connection of the account with this name; its groups and jobs stay. False if there is none. */
export async function removeConnection(queries: Queries, account: string): Promise<boolean> {
  return await hasRows(queries, REMOVE, account)
}

async function select(queries: Queries, which: string, ...values: Value[]): Promise<readonly Connection[]> {
  return z.array(connectionSchema).parse(await queries.query(`${SELECT} ${which}`, values))
}

async function hasRows(queries: Queries, sql: string, ...values: Value[]): Promise<boolean> {
  return (await queries.query(sql, values)).length > 0
}
