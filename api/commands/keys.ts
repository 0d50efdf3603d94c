/** Entry point of `npm run keys`: creates, lists, limits and revokes API keys (CONTRACT 9). Data on stdout, notes on stderr. */
import '../../pipeline/program/runtime.js'
import { z } from 'zod'
import {
  commandsOf,
  runAsProcess,
  runCommandLine,
  UsageError,
  type CommandLine,
} from '../../pipeline/program/program.ts'
import { KEY_KINDS } from '../accounts/credentials.ts'
import {
  createKey,
  limitKey,
  listKeys,
  revokeKey,
  type KeyChanges,
  type StoredKey,
} from '../accounts/key-store.ts'
import { readSettings } from '../config.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'

/** The dependencies of a command: the open store, and the output. */
type Dependencies = Pick<CommandLine, 'print' | 'note'> & { readonly store: Store }

const command = commandsOf<Dependencies>()

const KINDS = KEY_KINDS.join('|')
const CREATE = `create --account NAME --kind ${KINDS}`

const LIMIT_OPTIONS = {
  'requests-per-minute': {
    type: 'string',
    value: 'N',
    help: 'chat requests of the key in a minute; off for no limit',
  },
  'tokens-per-day': {
    type: 'string',
    value: 'N',
    help: 'tokens of its chat requests in a UTC day; off for no limit',
  },
  expires: {
    type: 'string',
    value: 'DATE',
    help: 'the first UTC day without the key, YYYY-MM-DD, or a time; off for never',
  },
} as const

// A name is one column of one line of the list.
const accountSchema = z.string().regex(/^[^\p{Cc}]*\S[^\p{Cc}]*$/u)

const create = command({
  usage: CREATE,
  summary: 'creates a key, and the account if it is new; the key is shown only now',
  options: {
    account: { type: 'string', value: 'NAME', help: 'the account that the key belongs to' },
    kind: {
      type: 'string',
      value: KINDS,
      help: 'inference for chat requests, management for directory sync',
    },
    ...LIMIT_OPTIONS,
  },
  prepare(values) {
    const account = accountSchema.safeParse(values.account).data
    const kind = z.enum(KEY_KINDS).safeParse(values.kind).data
    const limits = readLimits(values)
    if (account === undefined)
      throw new UsageError(`The account needs a name without line breaks or tabs: ${CREATE}`)
    if (kind === undefined) {
      const sent = values.kind === undefined ? 'missing' : `"${values.kind}"`
      throw new UsageError(`The kind is ${sent}: use --kind ${KEY_KINDS.join(' or --kind ')}`)
    }
    return async ({ store, print, note }) => {
      print(await createKey(store, { account, kind, now: new Date(), limits }))
      note(`Created a key of kind ${kind} for account "${account}". It is shown only now.`)
    }
  },
})

/** The columns of the list, and what they show. */
const LIST_COLUMNS = {
  id: 'id',
  account: 'account',
  kind: 'kind',
  ends_with: 'key_end',
  created_at: 'created_at',
  account_id: 'account_id',
  revoked_at: 'revoked_at',
  requests_per_minute: 'requests_per_minute',
  tokens_per_day: 'tokens_per_day',
  expires_at: 'expires_at',
} as const satisfies Readonly<Record<string, keyof StoredKey>>

const list = command({
  usage: 'list',
  summary: 'lists all keys, tab-separated, oldest first, with their last four characters',
  options: {},
  prepare:
    () =>
    async ({ store, print }) => {
      print(Object.keys(LIST_COLUMNS).join('\t'))
      for (const key of await listKeys(store)) {
        const cells = Object.values(LIST_COLUMNS).map((column) => key[column] ?? '')
        print(cells.join('\t'))
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
      note(
        `Key ${id}: ${requests ?? 'any number of'} requests a minute, ${tokens ?? 'any number of'} tokens a UTC day, ` +
          (expires === null ? 'never expires.' : `expires at ${expires}.`),
      )
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
    const store = await openStore(readSettings(line.environment), new Date())
    try {
      await work({ store, print: line.print, note: line.note })
    } finally {
      await store.close()
    }
  })
}

function unknownKey(id: string): UsageError {
  return new UsageError(`No key has the id "${id}": list shows the ids`)
}

type GivenLimits = { readonly [Name in keyof typeof LIMIT_OPTIONS]?: string | undefined }

function readLimits(given: GivenLimits): KeyChanges {
  return {
    requestsPerMinute: readCount(given, 'requests-per-minute', 1_000_000),
    tokensPerDay: readCount(given, 'tokens-per-day', 1_000_000_000_000),
    expires: readTime(given.expires),
  }
}

/** A whole number; null for `off`, undefined if the option is missing. */
function readCount(given: GivenLimits, name: 'requests-per-minute' | 'tokens-per-day', most: number) {
  const text = given[name]
  if (text === undefined) return undefined
  if (text === 'off') return null
  if (!/^[1-9]\d*$/.test(text) || Number(text) > most) {
    throw new UsageError(`--${name} is "${text}": use a whole number from 1 to ${most}, or off`)
  }
  return Number(text)
}

function readTime(text: string | undefined): Date | null | undefined {
  if (text === undefined) return undefined
  if (text === 'off') return null
  const time = z.union([z.iso.date(), z.iso.datetime()]).safeParse(text)
  if (time.success) return new Date(time.data)
  throw new UsageError(
    `--expires is "${text}": use a UTC day such as 2027-01-31, a time such as 2027-01-31T12:00:00Z, or off`,
  )
}

if (import.meta.main) await runAsProcess(keys)
