/** Entry point of `npm run keys`: creates, lists, limits and revokes API keys (CONTRACT 9). Data on stdout, notes on stderr. */
import '../../pipeline/program/runtime.js'
import { z } from 'zod'
import { JSON_OPTION, oneOf, option, required, wholeNumber } from '../../pipeline/program/options.ts'
import {
  UsageError,
  commandsOf,
  runAsProcess,
  runCommandLine,
  type CommandLine,
} from '../../pipeline/program/program.ts'
import { printRows } from '../../pipeline/program/terminal.ts'
import { createKey, KEY_KINDS, limitKey, listKeys, revokeKey, type StoredLimits } from '../accounts/keys.ts'
import { readSettings } from '../config.ts'
import { openStore } from '../store/open-store.ts'
import type { Row, Store } from '../store/store.ts'

/** The dependencies of a command: the open store, and the output. */
type Dependencies = Pick<CommandLine, 'print' | 'note'> & { readonly store: Store }

const command = commandsOf<Dependencies>()

const OFF = z.literal('off').transform(() => null)

function countOrOff(most: number) {
  return z.union([OFF, wholeNumber(1, most)], `Expected a whole number from 1 to ${most}, or off`)
}

const timeOrOff = z.union(
  [OFF, z.union([z.iso.date(), z.iso.datetime()]).transform((text) => new Date(text).toISOString())],
  'Expected a UTC day such as 2027-01-31, a time such as 2027-01-31T12:00:00Z, or off',
)

const LIMITS = {
  'requests-per-minute': option(
    'N',
    'chat requests of the key in a minute; off for no limit',
    countOrOff(1e6),
  ),
  'tokens-per-day': option(
    'N',
    'tokens of its chat requests in a UTC day; off for no limit',
    countOrOff(1e12),
  ),
  expires: option(
    'DATE',
    'the first UTC day without the key, YYYY-MM-DD, or a time; off for never',
    timeOrOff,
  ),
}

/** The given limits; missing options change nothing. */
function limitsIn(options: z.output<z.ZodObject<typeof LIMITS>>): Partial<StoredLimits> {
  const { 'requests-per-minute': requests_per_minute, 'tokens-per-day': tokens_per_day } = options
  return {
    ...(requests_per_minute !== undefined && { requests_per_minute }),
    ...(tokens_per_day !== undefined && { tokens_per_day }),
    ...(options.expires !== undefined && { expires_at: options.expires }),
  }
}

const NO_ACCOUNT = 'Expected a name without line breaks or tabs'

const create = command({
  summary: 'creates a key, and the account if it is new; the key is shown only now',
  options: {
    account: required(
      'NAME',
      'the account that the key belongs to',
      z.string(NO_ACCOUNT).regex(/^[^\p{Cc}]*\S[^\p{Cc}]*$/u, NO_ACCOUNT),
    ),
    kind: required(
      KEY_KINDS.join('|'),
      'inference for chat requests, management for directory sync',
      oneOf(KEY_KINDS),
    ),
    ...LIMITS,
  },
  check({ expires }) {
    // ISO times in UTC sort as text.
    if (expires && expires <= new Date().toISOString())
      throw new UsageError(`--expires: ${expires} is over: use a later time`)
  },
  async work({ store, print, note }, { account, kind, ...options }) {
    print(await createKey(store, { account, kind, now: new Date(), limits: limitsIn(options) }))
    note(`Created a key of kind ${kind} for account "${account}". It is shown only now.`)
  },
})

const COLUMNS =
  'id account kind ends_with created_at account_id revoked_at requests_per_minute tokens_per_day expires_at'

const list = command({
  summary: 'lists all keys, oldest first, with their last four characters',
  options: JSON_OPTION,
  async work({ store, print }, { json }) {
    const names = COLUMNS.split(' ')
    const rows: readonly Row[] = await listKeys(store)
    const cells = rows.map((row) => names.map((name) => row[name]))
    printRows({ print, json }, names, cells)
  },
})

const limit = command({
  summary: 'changes the limits of the key with this id (see list); options that are missing change nothing',
  takes: 'ID',
  options: LIMITS,
  async work({ store, note }, options, [id = '']) {
    const key = await store.transaction((queries) => limitKey(queries, id, limitsIn(options)))
    if (key === undefined) throw unknownKey(id)
    const { requests_per_minute: requests, tokens_per_day: tokens, expires_at: expires } = key
    const numbers = `${requests ?? 'any number of'} requests a minute, ${tokens ?? 'any number of'} tokens a UTC day`
    note(`Key ${id}: ${numbers}, ${expires === null ? 'never expires' : `expires at ${expires}`}.`)
  },
})

const revoke = command({
  summary: 'revokes the key with this id (see list), at once and for good',
  takes: 'ID',
  options: {},
  async work({ store, note }, _options, [id = '']) {
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
    await using store = await openStore(readSettings(line.environment), { mustExist })
    await work({ ...line, store })
  })
}

if (import.meta.main) await runAsProcess(keys)
