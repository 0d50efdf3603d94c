/** The directory connections of accounts, at most one each. Tokens are not stored. */
import { z } from 'zod'
import type { Queries, Store } from '../store/store.ts'

/** Where a sync reads members: from the list of groups, by a request per group, or not at all. */
export const MEMBER_MODES = ['inline', 'per_group', 'off'] as const

export type MemberMode = (typeof MEMBER_MODES)[number]

/** This many groups and members may be removed in one sync, and beyond them this percentage. */
export interface DeletionGate {
  readonly groups: number
  readonly members: number
  readonly percent: number
}

export const DEFAULT_GATE: DeletionGate = { groups: 5, members: 50, percent: 20 }

/** Where a sync reads the token, or the secret of the OAuth client. */
const TOKEN_KINDS = ['env', 'file'] as const

const flagSchema = z.number().transform((number) => number !== 0)

const connectionSchema = z
  .object({
    account_id: z.string(),
    account: z.string(),
    url: z.string().transform((text) => new URL(text)),
    token_kind: z.enum(TOKEN_KINDS),
    token_source: z.string(),
    token_url: z
      .string()
      .transform((text) => new URL(text))
      .nullable(),
    client_id: z.string().nullable(),
    members: z.enum(MEMBER_MODES),
    allow_loopback: flagSchema,
    allow_private: flagSchema,
    gate_groups: z.number().nullable(),
    gate_members: z.number().nullable(),
    gate_percent: z.number().nullable(),
    schedule: z.string().nullable(),
    next_sync_at: z.string().nullable(),
    updated_at: z.string(),
  })
  .transform((row) => ({
    accountId: row.account_id,
    account: row.account,
    url: row.url,
    token: { kind: row.token_kind, source: row.token_source },
    /** Where a token is requested with the secret (RFC 6749, 4.4); null if `token` names the token itself. */
    oauth:
      row.token_url === null || row.client_id === null
        ? null
        : { url: row.token_url, clientId: row.client_id },
    members: row.members,
    reach: { allowLoopback: row.allow_loopback, allowPrivate: row.allow_private },
    gate: {
      groups: row.gate_groups ?? DEFAULT_GATE.groups,
      members: row.gate_members ?? DEFAULT_GATE.members,
      percent: row.gate_percent ?? DEFAULT_GATE.percent,
    },
    schedule: row.schedule,
    nextSyncAt: row.next_sync_at,
    /** Changes with every `set`, so that a sync detects a changed connection. */
    updatedAt: row.updated_at,
  }))

/** A connection; times are ISO 8601 UTC with milliseconds. */
export type Connection = z.infer<typeof connectionSchema>

/** The connection as an operator sets it. */
export type ConnectionWanted = Pick<
  Connection,
  'url' | 'token' | 'oauth' | 'members' | 'reach' | 'gate' | 'schedule' | 'nextSyncAt'
>

const SELECT = `
  SELECT c.account_id, a.name AS account, c.url, c.token_kind, c.token_source, c.members, c.allow_loopback,
    c.allow_private, c.gate_groups, c.gate_members, c.gate_percent, c.schedule, c.next_sync_at, c.updated_at,
    c.token_url, c.client_id
  FROM scim_connections AS c JOIN accounts AS a ON a.id = c.account_id`
const FIND = `${SELECT} WHERE c.account_id = $1`
const FIND_BY_NAME = `${SELECT} WHERE a.name = $1`
const LIST = `${SELECT} ORDER BY a.name`
const DUE = `${SELECT} WHERE c.next_sync_at <= $1 ORDER BY c.next_sync_at`
const ACCOUNT_BY_NAME = 'SELECT id FROM accounts WHERE name = $1'
const PUT = `
  INSERT INTO scim_connections (account_id, url, token_kind, token_source, members, allow_loopback, allow_private,
    schedule, next_sync_at, updated_at, gate_groups, gate_members, gate_percent, token_url, client_id)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
  ON CONFLICT (account_id) DO UPDATE SET
    url = excluded.url, token_kind = excluded.token_kind, token_source = excluded.token_source,
    members = excluded.members, allow_loopback = excluded.allow_loopback, allow_private = excluded.allow_private,
    schedule = excluded.schedule, next_sync_at = excluded.next_sync_at, updated_at = excluded.updated_at,
    gate_groups = excluded.gate_groups, gate_members = excluded.gate_members, gate_percent = excluded.gate_percent,
    token_url = excluded.token_url, client_id = excluded.client_id`
const HOLD = `
  UPDATE scim_connections SET updated_at = updated_at WHERE account_id = $1 AND updated_at = $2
  RETURNING account_id`
const REMOVE = `
  DELETE FROM scim_connections WHERE account_id IN (SELECT id FROM accounts WHERE name = $1) RETURNING account_id`
const ADVANCE = `
  UPDATE scim_connections SET next_sync_at = $3 WHERE account_id = $1 AND next_sync_at = $2 RETURNING account_id`

/** Sets or replaces the connection of the account with this name; false without such an account. */
export async function putConnection(
  store: Store,
  account: string,
  wanted: ConnectionWanted,
  now: Date,
): Promise<boolean> {
  return await store.transaction(async (queries) => {
    const [found] = await queries.query(ACCOUNT_BY_NAME, [account])
    if (found === undefined) return false
    const { url, token, oauth, members, reach, gate, schedule, nextSyncAt } = wanted
    const flags = [Number(reach.allowLoopback), Number(reach.allowPrivate)]
    const { id } = z.object({ id: z.string() }).parse(found)
    const place = [url.href, token.kind, token.source]
    const times = [schedule, nextSyncAt, now.toISOString()]
    const gateValues = [gate.groups, gate.members, gate.percent]
    const client = [oauth?.url.href ?? null, oauth?.clientId ?? null]
    await queries.query(PUT, [id, ...place, members, ...flags, ...times, ...gateValues, ...client])
    return true
  })
}

export async function findConnection(queries: Queries, accountId: string): Promise<Connection | undefined> {
  return connectionOf(await queries.query(FIND, [accountId]))
}

export async function findConnectionByName(
  queries: Queries,
  account: string,
): Promise<Connection | undefined> {
  return connectionOf(await queries.query(FIND_BY_NAME, [account]))
}

/** All connections, ordered by account name. */
export async function listConnections(queries: Queries): Promise<readonly Connection[]> {
  return z.array(connectionSchema).parse(await queries.query(LIST))
}

/** Locks a connection until the transaction ends; false if it has changed. */
export async function holdConnection(
  queries: Queries,
  { accountId, updatedAt }: Connection,
): Promise<boolean> {
  return (await queries.query(HOLD, [accountId, updatedAt])).length > 0
}

/** Removes the connection of the account with this name; its groups and jobs stay. False if there is none. */
export async function removeConnection(queries: Queries, account: string): Promise<boolean> {
  return (await queries.query(REMOVE, [account])).length > 0
}

/** The connections with a due sync, as rows: one unreadable connection must not block the others. */
export async function dueConnections(queries: Queries, now: Date): Promise<readonly unknown[]> {
  return await queries.query(DUE, [now.toISOString()])
}

/**
 * The connection of a row.
 * @throws {z.ZodError} if the row is invalid.
 */
export function readConnection(row: unknown): Connection {
  return connectionSchema.parse(row)
}

/** Sets the next sync time; false if another process did, which then starts the sync. */
export async function advanceSchedule(
  queries: Queries,
  { accountId, nextSyncAt }: Connection,
  next: Date | undefined,
): Promise<boolean> {
  const rows = await queries.query(ADVANCE, [accountId, nextSyncAt, next?.toISOString() ?? null])
  return rows.length > 0
}

function connectionOf([row]: readonly unknown[]): Connection | undefined {
  return row === undefined ? undefined : connectionSchema.parse(row)
}
