/** Entry point of `npm run keys`: creates, lists, limits and revokes API keys (CONTRACT 9). Data on stdout, notes on stderr. */
import '../../pipeline/program/runtime.js'
import { z } from 'zod'
import {
  UsageError,
  parseCommandLine,
  runAsProcess,
  runCommandLine,
  type Command,
  type CommandLine,
  type Work,
} from '../../pipeline/program/program.ts'
import { readSettings } from '../config.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { KEY_KINDS, type KeyKind } from '../accounts/credentials.ts'
import {
  createKey,
  limitKey,
  listKeys,
  revokeKey,
  type KeyChanges,
  type StoredKey,
} from '../accounts/key-store.ts'

/** The dependencies of a command: the open store, and the output. */
type Dependencies = Pick<CommandLine, 'print' | 'note'> & { readonly store: Store }
type KeysCommand = Command<Dependencies>

const CREATE = `create --account NAME --kind ${KEY_KINDS.join('|')}`
const LIMIT = 'limit ID [--requests-per-minute N] [--tokens-per-day N] [--expires DATE]'

const LIMIT_OPTIONS = {
  '--requests-per-minute N': 'chat requests of the key in a minute; off for no limit',
  '--tokens-per-day N': 'tokens of its chat requests in a UTC day; off for no limit',
  '--expires DATE': 'the first UTC day without the key, YYYY-MM-DD, or a time; off for never',
}

const COMMANDS: Readonly<Record<string, KeysCommand>> = {
  create: {
    usage: CREATE,
    summary: 'creates a key, and the account if it is new; the key is shown only now',
    options: {
      '--account NAME': 'the account that the key belongs to',
      [`--kind ${KEY_KINDS.join('|')}`]: 'inference for chat requests, management for directory sync',
      ...LIMIT_OPTIONS,
    },
    prepare: prepareCreate,
  },
  list: {
    usage: 'list',
    summary: 'lists all keys, tab-separated, oldest first, with their last four characters',
    prepare: prepareList,
  },
  limit: {
    usage: LIMIT,
    summary: 'changes the limits of the key with this id (see list); options that are missing change nothing',
    options: LIMIT_OPTIONS,
    prepare: prepareLimit,
  },
  revoke: {
    usage: 'revoke ID',
    summary: 'revokes the key with this id (see list), at once and for good',
    prepare: prepareRevoke,
  },
}

// A name is one column of one line of the list.
const ACCOUNT_NAME = /^[^\p{Cc}]*\S[^\p{Cc}]*$/u

const PROGRAM = {
  call: 'npm run -s keys',
  summary: 'Creates, lists, limits and revokes API keys. Data goes to stdout, messages to stderr.',
  commands: COMMANDS,
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

function prepareCreate(args: string[]): Work<Dependencies> {
  const { values, positionals } = readOptions(args, CREATE)
  const { account, kind, ...given } = values
  const limits = readLimits(given)
  refuseArguments(positionals, CREATE)
  if (account === undefined || !ACCOUNT_NAME.test(account)) {
    throw new UsageError(`The account needs a name without line breaks or tabs: ${CREATE}`)
  }
  if (!isKeyKind(kind)) {
    const sent = kind === undefined ? 'missing' : `"${kind}"`
    throw new UsageError(`The kind is ${sent}: use --kind ${KEY_KINDS.join(' or --kind ')}`)
  }
  return async ({ store, print, note }) => {
    print(await createKey(store, { account, kind, now: new Date(), limits }))
    note(`Created a key of kind ${kind} for account "${account}". It is shown only now.`)
  }
}

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

function prepareList(args: readonly string[]): Work<Dependencies> {
  refuseArguments(args, 'list')
  return async ({ store, print }) => {
    print(Object.keys(LIST_COLUMNS).join('\t'))
    for (const key of await listKeys(store)) {
      print(
        Object.values(LIST_COLUMNS)
          .map((column) => key[column] ?? '')
          .join('\t'),
      )
    }
  }
}

function prepareRevoke([id, ...rest]: readonly string[]): Work<Dependencies> {
  if (id === undefined) throw new UsageError('The id is missing: use revoke ID; list shows the ids')
  refuseArguments(rest, 'revoke ID')
  return async ({ store, note }) => {
    if (!(await revokeKey(store, id, new Date()))) {
      throw new UsageError(`No key has the id "${id}": list shows the ids`)
    }
    note(`Revoked key ${id}.`)
  }
}

function prepareLimit(args: string[]): Work<Dependencies> {
  const { values, positionals } = readOptions(args, LIMIT)
  const [id, ...rest] = positionals
  if (id === undefined) throw new UsageError(`The id is missing: use ${LIMIT}; list shows the ids`)
  refuseArguments(rest, LIMIT)
  if (values.account !== undefined || values.kind !== undefined) {
    throw new UsageError(`Account and kind of a key never change: use ${LIMIT}`)
  }
  const changes = readLimits(values)
  return async ({ store, note }) => {
    const key = await limitKey(store, id, changes)
    if (key === undefined) throw new UsageError(`No key has the id "${id}": list shows the ids`)
    const { requests_per_minute: requests, tokens_per_day: tokens, expires_at: expires } = key
    note(
      `Key ${id}: ${requests ?? 'any number of'} requests a minute, ${tokens ?? 'any number of'} tokens a UTC day, ` +
        (expires === null ? 'never expires.' : `expires at ${expires}.`),
    )
  }
}

const TEXT = { type: 'string' } as const

function readOptions(args: string[], usage: string) {
  const options = {
    account: TEXT,
    kind: TEXT,
    'requests-per-minute': TEXT,
    'tokens-per-day': TEXT,
    expires: TEXT,
  }
  return parseCommandLine({ args, options, allowPositionals: true }, usage)
}

type GivenLimits = { readonly [Name in 'requests-per-minute' | 'tokens-per-day' | 'expires']?: string }

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
  if (!time.success) {
    throw new UsageError(
      `--expires is "${text}": use a UTC day such as 2027-01-31, a time such as 2027-01-31T12:00:00Z, or off`,
    )
  }
  return new Date(time.data)
}

function refuseArguments(args: readonly string[], usage: string): void {
  if (args.length > 0) throw new UsageError(`Unexpected argument "${args[0]}": use ${usage}`)
}

function isKeyKind(kind: string | undefined): kind is KeyKind {
  return KEY_KINDS.some((known) => known === kind)
}

if (import.meta.main) await runAsProcess(keys)
