/** Entry point of `npm run keys`: creates, lists and revokes API keys (CONTRACT 9). Data on stdout, notes on stderr. */
import '../../pipeline/program/runtime.js'
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
import { KEY_KINDS, type KeyKind } from '../accounts/keys/credentials.ts'
import { createKey, listKeys, revokeKey } from '../accounts/keys/key-store.ts'

/** The dependencies of a command: the open store, and the output. */
type Dependencies = Pick<CommandLine, 'print' | 'note'> & { readonly store: Store }
type KeysCommand = Command<Dependencies>

const CREATE = `create --account NAME --kind ${KEY_KINDS.join('|')}`

const COMMANDS: Readonly<Record<string, KeysCommand>> = {
  create: {
    usage: CREATE,
    summary: 'creates a key, and the account if it is new; the key is shown only now',
    options: {
      '--account NAME': 'the account that the key belongs to',
      [`--kind ${KEY_KINDS.join('|')}`]: 'inference for chat requests, management for directory sync',
    },
    prepare: prepareCreate,
  },
  list: {
    usage: 'list',
    summary: 'lists all keys, tab-separated, oldest first, with their last four characters',
    prepare: prepareList,
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
  summary: 'Creates, lists and revokes API keys. Data goes to stdout, messages to stderr.',
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
  const { account, kind } = readOptions(args)
  if (account === undefined || !ACCOUNT_NAME.test(account)) {
    throw new UsageError(`The account needs a name without line breaks or tabs: ${CREATE}`)
  }
  if (!isKeyKind(kind)) {
    const sent = kind === undefined ? 'missing' : `"${kind}"`
    throw new UsageError(`The kind is ${sent}: use --kind ${KEY_KINDS.join(' or --kind ')}`)
  }
  return async ({ store, print, note }) => {
    print(await createKey(store, { account, kind, now: new Date() }))
    note(`Created a key of kind ${kind} for account "${account}". It is shown only now.`)
  }
}

function prepareList(args: readonly string[]): Work<Dependencies> {
  refuseArguments(args, 'list')
  return async ({ store, print }) => {
    print('id\taccount\tkind\tends_with\tcreated_at\taccount_id\trevoked_at')
    for (const { id, account, kind, key_end, created_at, account_id, revoked_at } of await listKeys(store)) {
      print([id, account, kind, key_end, created_at, account_id, revoked_at ?? ''].join('\t'))
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

function readOptions(args: string[]): { account?: string; kind?: string } {
  const options = { account: { type: 'string' }, kind: { type: 'string' } } as const
  return parseCommandLine({ args, options }, CREATE).values
}

function refuseArguments(args: readonly string[], usage: string): void {
  if (args.length > 0) throw new UsageError(`Unexpected argument "${args[0]}": use ${usage}`)
}

function isKeyKind(kind: string | undefined): kind is KeyKind {
  return KEY_KINDS.some((known) => known === kind)
}

if (import.meta.main) await runAsProcess(keys)
