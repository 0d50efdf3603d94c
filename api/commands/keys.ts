/** Entry point of `npm run keys`: creates, lists, limits and revokes API keys (CONTRACT 9). Data on stdout, notes on stderr. */
import '../../pipeline/program/runtime.js'
import { z } from 'zod'
import {
  commandsOf,
  runAsProcess,
  runCommandLine,
  textOption,
  UsageError,
  type CommandLine,
} from '../../pipeline/program/program.ts'
import { createKey, KEY_KINDS, limitKey, listKeys, revokeKey, type StoredLimits } from '../accounts/keys.ts'
import { readSettings } from '../config.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'

/** The dependencies of a command: the open store, and the output. */
type Dependencies = Pick<CommandLine, 'print' | 'note'> & { readonly store: Store }

const command = commandsOf<Dependencies>()

const LIMIT_OPTIONS = {
  'requests-per-minute': textOption('N', 'chat requests of the key in a minute; off for no limit'),
  'tokens-per-day': textOption('N', 'tokens of its chat requests in a UTC day; off for no limit'),
  expires: textOption('DATE', 'the first UTC day without the key, YYYY-MM-DD, or a time; off for never'),
} as const

/** The given limits, null for `off`; missing options change nothing. */
function readLimits(given: { readonly [Name in keyof typeof LIMIT_OPTIONS]?: string | undefined }) {
  const { expires, 'requests-per-minute': requests, 'tokens-per-day': tokens } = given
  const limits: Partial<StoredLimits> = {}
  if (requests !== undefined) limits.requests_per_minute = readCount('requests-per-minute', requests, 1e6)
  if (tokens !== undefined) limits.tokens_per_day = readCount('tokens-per-day', tokens, 1e12)
  if (expires !== undefined) limits.expires_at = readTime(expires)
  return limits
}

function readCount(name: string, text: string, most: number): number | null {
  if (text === 'off') return null
  if (/^[1-9]\d*$/.test(text) && Number(text) <= most) return Number(text)
  throw new UsageError(`--${name} is "${text}": use a whole number from 1 to ${most}, or off`)
}

function readTime(text: string): string | null {
  if (text === 'off') return null
  const time = z.union([z.iso.date(), z.iso.datetime()]).safeParse(text)
  if (time.success) return new Date(time.data).toISOString()
  throw new UsageError(
    `--expires is "${text}": use a UTC day such as 2027-01-31, a time such as 2027-01-31T12:00:00Z, or off`,
  )
}

// A name is one column of one line of the list.
const accountSchema = z.string().regex(/^[^\p{Cc}]*\S[^\p{Cc}]*$/u)
const CREATE = `create --account NAME --kind ${KEY_KINDS.join('|')}`

const create = command({
  usage: CREATE,
  summary: 'creates a key, and the account if it is new; the key is shown only now',
  options: {
    account: textOption('NAME', 'the account that the key belongs to'),
    kind: textOption(KEY_KINDS.join('|'), 'inference for chat requests, management for directory sync'),
    ...LIMIT_OPTIONS,
  },
  prepare(values) {
    const account = accountSchema.safeParse(values.account).data
    const kind = KEY_KINDS.find((known) => known === values.kind)
    const limits = readLimits(values)
    if (account === undefined)
      throw new UsageError(`The account needs a name without line breaks or tabs: ${CREATE}`)
    if (kind === undefined) {
      const sent = values.kind === undefined ? 'missing' : `"${values.kind}"`
      throw new UsageError(`The kind is ${sent}: use --kind ${KEY_KINDS.join(' or --kind ')}`)
    }
    const now = new Date()
    // ISO times in UTC sort as text.
    if (limits.expires_at && limits.expires_at <= now.toISOString())
      throw new UsageError(`--expires is "${values.expires}", which is over: use a later time`)
    return async ({ store, print, note }) => {
      print(await createKey(store, { account, kind, now, limits }))
      note(`Created a key of kind ${kind} for account "${account}". It is shown only now.`)
    }
  },
})

const COLUMNS =
  'id account kind ends_with created_at account_id revoked_at requests_per_minute tokens_per_day expires_at'

const list = command({
  usage: 'list',
  summary: 'lists all keys, tab-separated, oldest first, with their last four characters',
  options: {},
  prepare:
    () =>
    async ({ store, print }) => {
      const columns = COLUMNS.split(' ')
      print(columns.join('\t'))
      for (const key of await listKeys(store)) {
        const row: Readonly<Record<string, string | number | null>> = { ...key, ends_with: key.key_end }
        print(columns.map((name) => row[name] ?? '').join('\t'))
      }
    },
})

const ONE_ID = [1, 1, 'one id, which list shows'] as const

const limit = command({
  usage: 'limit ID [--requests-per-minute N] [--tokens-per-day N] [--expires DATE]',
  summary: 'changes the limits of the key with this id (see list); options that are missing change nothing',
  options: LIMIT_OPTIONS,
  takes: ONE_ID,
  prepare(values, [id = '']) {
    const changes = readLimits(values)
    return async ({ store, note }) => {
      const key = await limitKey(store, id, changes)
      if (key === undefined) throw unknownKey(id)
      const { requests_per_minute: requests, tokens_per_day: tokens, expires_at: expires } = key
      const numbers = `${requests ?? 'any number of'} requests a minute, ${tokens ?? 'any number of'} tokens a UTC day`
      note(`Key ${id}: ${numbers}, ${expires === null ? 'never expires' : `expires at ${expires}`}.`)
    }
  },
})

const revoke = command({
  usage: 'revoke ID',
  summary: 'revokes the key with this id (see list), at once and for good',
  options: {},
  takes: ONE_ID,
  prepare:
    (_values, [id = '']) =>
    async ({ store, note }) => {
      if (!(await revokeKey(store, id, new Date()))) throw unknownKey(id)
      note(`Revoked key ${id}.`)
    },
})

function unknownKey(id: string): UsageError {
  return new UsageError(`No key has the id "${id}": list shows the ids`)
}

const PROGRAM = {
  call: 'npm run -s keys',
  summary: 'Creates, lists, limits and revokes API keys. Data goes to stdout, messages to stderr.',
  commands: { create, list, limit, revoke },
  notes: `The keys are in the folder DATA_DIR (default: data), or in the database of DATABASE_URL.

Exit codes: 0 done, 2 wrong usage or a crash`,
}

/** Runs a command; resolves to the exit code. */
export function keys(line: CommandLine): Promise<number> {
  return runCommandLine(PROGRAM, line, async (work) => {
    const mustExist = line.args[0] !== 'create'
    await using store = await openStore(readSettings(line.environment), new Date(), { mustExist })
    await work({ ...line, store })
  })
}

if (import.meta.main) await runAsProcess(keys)
