/** API keys (CONTRACT 2): 32 random bytes behind a readable prefix. The store has their hash, never the key itself. */
import { hash, randomBytes, randomUUID } from 'node:crypto'
import { z } from 'zod'
import { UsageError } from '../../pipeline/program/program.ts'
import { collectTurn, places, type Queries, type Store } from '../store/store.ts'

export const KEY_KINDS = ['inference', 'management'] as const
export type KeyKind = (typeof KEY_KINDS)[number]

/** SHA-256 in hexadecimal. A slow password hash would add nothing: 256 random bits cannot be guessed. */
function hashKey(key: string): string {
  return hash('sha256', key)
}

/** What a key may be limited to (CONTRACT 6): chat requests and their tokens, and its end; null for no limit. */
const limitsSchema = z.object({
  requests_per_minute: z.number().nullable(),
  tokens_per_day: z.number().nullable(),
  expires_at: z.string().nullable(),
})
export type StoredLimits = z.infer<typeof limitsSchema>

const storedKeySchema = limitsSchema.extend({
  id: z.string(),
  account_id: z.string(),
  account: z.string(),
  kind: z.enum(KEY_KINDS),
  ends_with: z.string(),
  created_at: z.string(),
  revoked_at: z.string().nullable(),
})

/** A stored key without its secret and its hash, so that no log or reply can show them; times are ISO 8601 UTC. */
export type StoredKey = z.infer<typeof storedKeySchema>

const SELECT_KEYS = `
  SELECT k.id, k.account_id, a.name AS account, k.kind, k.key_hash, k.key_end AS ends_with, k.created_at, k.revoked_at,
    k.requests_per_minute, k.tokens_per_day, k.expires_at
  FROM api_keys AS k JOIN accounts AS a ON a.id = k.account_id`
const FIND = (keys: number) => `${SELECT_KEYS} WHERE k.key_hash IN (VALUES ${places(1, keys)})`
const ADD_ACCOUNT = `
  INSERT INTO accounts (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING`
const ADD_KEY = `
  INSERT INTO api_keys (id, account_id, kind, key_hash, key_end, created_at)
  SELECT $1, id, $2, $3, $4, $5 FROM accounts WHERE name = $6`
const LIMIT =
  'UPDATE api_keys SET requests_per_minute = $2, tokens_per_day = $3, expires_at = $4 WHERE id = $1'
const REVOKE = 'UPDATE api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 RETURNING id'

const KEY_END_CHARACTERS = 4

type NewKey = {
  readonly account: string
  readonly kind: KeyKind
  readonly now: Date
  readonly limits?: Partial<StoredLimits>
}

/** Creates a key, and its account if the name is new. Resolves to the secret, which is shown nowhere else. */
export async function createKey(store: Store, wanted: NewKey): Promise<string> {
  return await store.transaction((queries) => addKey(queries, wanted))
}

/** Like createKey, but only if no key exists, revoked ones included; otherwise undefined. */
export async function createFirstKey(store: Store, wanted: NewKey): Promise<string | undefined> {
  return await store.transaction(async (queries) => {
    const keys = await queries.query('SELECT 1 AS found FROM api_keys LIMIT 1')
    return keys.length === 0 ? await addKey(queries, wanted) : undefined
  })
}

/** createKey inside a transaction. */
export async function addKey(queries: Queries, { account, kind, now, limits = {} }: NewKey): Promise<string> {
  const key = `sk-${kind}-${randomBytes(32).toString('base64url')}`
  const [id, time] = [randomUUID(), now.toISOString()]
  await queries.query(ADD_ACCOUNT, [randomUUID(), account, time])
  await queries.query(ADD_KEY, [id, kind, hashKey(key), key.slice(-KEY_END_CHARACTERS), time, account])
  await limitKey(queries, id, limits)
  return key
}

/**
 * Changes the limits of the key with this id inside a transaction; resolves to the changed key, undefined if there is none.
 * @throws UsageError for limits of chat of a management key.
 */
export async function limitKey(queries: Queries, id: string, changes: Partial<StoredLimits>) {
  const [row] = await queries.query(`${SELECT_KEYS} WHERE k.id = $1`, [id])
  if (row === undefined) return undefined
  const key: StoredKey = { ...storedKeySchema.parse(row), ...changes }
  if (key.kind === 'management' && (changes.requests_per_minute ?? changes.tokens_per_day))
    throw new UsageError(
      'A management key sends no chat requests: leave out --requests-per-minute and --tokens-per-day',
    )
  await queries.query(LIMIT, [id, key.requests_per_minute, key.tokens_per_day, key.expires_at])
  return key
}

/** A function that finds the key with a secret, revoked or not: the keys of all requests of a turn together. */
export function createKeyFinder(store: Queries) {
  const find = collectTurn(async (hashes: readonly string[]) => {
    const wanted = [...new Set(hashes)]
    const rows = await store.query(FIND(wanted.length), wanted)
    const found = new Map(rows.map((row) => [row['key_hash'], storedKeySchema.parse(row)]))
    return (digest) => found.get(digest)
  })
  return (key: string) => find(hashKey(key))
}

/** All keys, oldest first, revoked ones included. */
export async function listKeys(store: Store): Promise<readonly StoredKey[]> {
  return z.array(storedKeySchema).parse(await store.query(`${SELECT_KEYS} ORDER BY k.created_at, k.id`))
}

/** Revokes the key with this id for good; false if there is none. A second call changes nothing. */
export async function revokeKey(store: Store, id: string, now: Date): Promise<boolean> {
  // A transaction is synced, so that no power cut restores the key.
  const rows = await store.transaction((queries) => queries.query(REVOKE, [id, now.toISOString()]))
  return rows.length > 0
}
