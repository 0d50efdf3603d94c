/** Keys in the store: created, found by hash, listed, revoked. The secret is not stored. */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { collectTurn, places, type RequestStore } from '../store/request-store.ts'
import type { Queries, Store } from '../store/store.ts'
import { hashKey, KEY_KINDS, makeKey, type KeyKind } from './credentials.ts'

const storedKeySchema = z.object({
  id: z.string(),
  account_id: z.string(),
  account: z.string(),
  kind: z.enum(KEY_KINDS),
  key_hash: z.string(),
  key_end: z.string(),
  created_at: z.string(),
  revoked_at: z.string().nullable(),
  requests_per_minute: z.number().nullable(),
  tokens_per_day: z.number().nullable(),
  expires_at: z.string().nullable(),
})

/** A stored key without its secret; times are ISO 8601 UTC. */
export type StoredKey = z.infer<typeof storedKeySchema>

/** Finds the key with a secret, revoked or not. */
export type KeyFinder = (key: string) => Promise<StoredKey | undefined>

const SELECT_KEYS = `
  SELECT k.id, k.account_id, a.name AS account, k.kind, k.key_hash, k.key_end, k.created_at, k.revoked_at,
    k.requests_per_minute, k.tokens_per_day, k.expires_at
  FROM api_keys AS k JOIN accounts AS a ON a.id = k.account_id`
const FIND = (keys: number) => `${SELECT_KEYS} WHERE k.key_hash IN (VALUES ${places(1, keys)})`
const LIST = `${SELECT_KEYS} ORDER BY k.created_at, k.id`
const ANY_KEY = 'SELECT 1 AS found FROM api_keys LIMIT 1'
const ADD_ACCOUNT = `
  INSERT INTO accounts (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING`
const ACCOUNT_BY_NAME = 'SELECT id FROM accounts WHERE name = $1'
const ADD_KEY = `
  INSERT INTO api_keys (id, account_id, kind, key_hash, key_end, created_at, requests_per_minute, tokens_per_day, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
const LIMIT = `
  UPDATE api_keys SET requests_per_minute = $2, tokens_per_day = $3, expires_at = $4 WHERE id = $1 RETURNING id`
const BY_ID = `${SELECT_KEYS} WHERE k.id = $1`
const REVOKE = 'UPDATE api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 RETURNING id'

const KEY_END_CHARACTERS = 4

/** What a key may be limited by (CONTRACT 6), each null for no limit; missing ones stay as they are. */
export interface KeyChanges {
  readonly requestsPerMinute?: number | null | undefined
  readonly tokensPerDay?: number | null | undefined
  /** When the key ends. */
  readonly expires?: Date | null | undefined
}

interface NewKey {
  readonly account: string
  readonly kind: KeyKind
  readonly now: Date
  readonly limits?: KeyChanges
}

/** Creates a key, and its account if the name is new. Resolves to the secret, which is shown nowhere else. */
export async function createKey(store: Store, wanted: NewKey): Promise<string> {
  return await store.transaction((queries) => addKey(queries, wanted))
}

/** Like createKey, but only if no key exists, revoked ones included; otherwise undefined. */
export async function createFirstKey(store: Store, wanted: NewKey): Promise<string | undefined> {
  return await store.transaction(async (queries) => {
    const keys = await queries.query(ANY_KEY)
    return keys.length === 0 ? await addKey(queries, wanted) : undefined
  })
}

async function addKey(queries: Queries, { account, kind, now, limits = {} }: NewKey): Promise<string> {
  const time = now.toISOString()
  await queries.query(ADD_ACCOUNT, [randomUUID(), account, time])
  const [found] = await queries.query(ACCOUNT_BY_NAME, [account])
  const accountId = z.object({ id: z.string() }).parse(found).id
  const key = makeKey(kind)
  const keyEnd = key.slice(-KEY_END_CHARACTERS)
  await queries.query(ADD_KEY, [
    randomUUID(),
    accountId,
    kind,
    hashKey(key),
    keyEnd,
    time,
    ...limitValues(limits),
  ])
  return key
}

function limitValues({ requestsPerMinute, tokensPerDay, expires }: KeyChanges) {
  return [requestsPerMinute ?? null, tokensPerDay ?? null, expires?.toISOString() ?? null] as const
}

/** Changes the limits of the key with this id; resolves to the changed key; undefined if there is none. */
export async function limitKey(
  store: Store,
  id: string,
  changes: KeyChanges,
): Promise<StoredKey | undefined> {
  return await store.transaction(async (queries) => {
    const [row] = await queries.query(BY_ID, [id])
    if (row === undefined) return undefined
    const key = storedKeySchema.parse(row)
    const { requestsPerMinute = key.requests_per_minute, tokensPerDay = key.tokens_per_day } = changes
    const expires = changes.expires === undefined ? key.expires_at : (changes.expires?.toISOString() ?? null)
    await queries.query(LIMIT, [id, requestsPerMinute, tokensPerDay, expires])
    return {
      ...key,
      requests_per_minute: requestsPerMinute,
      tokens_per_day: tokensPerDay,
      expires_at: expires,
    }
  })
}

/** Looks the keys of all requests of a turn of the event loop up together, in the unique index of hashes. */
export function createKeyFinder(store: RequestStore): KeyFinder {
  const find = collectTurn(async (hashes: readonly string[]) => {
    const wanted = [...new Set(hashes)]
    const rows = z.array(storedKeySchema).parse(await store.query(FIND(wanted.length), wanted))
    const found = new Map(rows.map((row) => [row.key_hash, row]))
    return (hash) => found.get(hash)
  })
  return (key) => find(hashKey(key))
}

/** All keys, oldest first, revoked ones included. */
export async function listKeys(store: Store): Promise<readonly StoredKey[]> {
  return z.array(storedKeySchema).parse(await store.query(LIST))
}

/** Revokes the key with this id for good; false if there is none. A second call changes nothing. */
export async function revokeKey(store: Store, id: string, now: Date): Promise<boolean> {
  // A transaction is synced, so that no power cut restores the key.
  const rows = await store.transaction((queries) => queries.query(REVOKE, [id, now.toISOString()]))
  return rows.length > 0
}
