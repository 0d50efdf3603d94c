/** Entry of `npm run keys`: makes, lists and revokes API keys (CONTRACT 9). Data on stdout, notes on stderr. */
import { parseArgs } from 'node:util'
import { readSettings } from '../config.ts'
import { EXIT_USAGE, chooseCommand, failureText, runAsProcess, type CommandLine } from '../process/entry.ts'
import { OperatorError } from '../http/errors.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { KEY_KINDS, type KeyKind } from '../accounts/keys/credentials.ts'
import { createKey, listKeys, revokeKey } from '../accounts/keys/key-store.ts'

interface Command {
  readonly usage: string
  readonly summary: string
  /** Checks the arguments, before anything is opened, and returns what is to be done. */
  prepare(args: readonly string[]): Work
}

type Work = (store: Store, output: Pick<CommandLine, 'print' | 'note'>) => Promise<void>

const COMMANDS: Readonly<Record<string, Command>> = {
  create: {
    usage: `create --account NAME --kind ${KEY_KINDS.join('|')}`,
    summary: 'makes a key, and the account where it is new; the key is shown only now',
    prepare: prepareCreate,
  },
  list: {
    usage: 'list',
    summary: 'lists all keys, tab-separated, oldest first; of the key itself the last four characters',
    prepare: prepareList,
  },
  revoke: {
    usage: 'revoke ID',
    summary: 'revokes the key with this id (see list), at once and for good',
    prepare: prepareRevoke,
  },
}

// A name stands in one column of one line of the list.
const ACCOUNT_NAME = /^[^\p{Cc}]*\S[^\p{Cc}]*$/u

const HELP = [
  'Usage: npm run -s keys -- COMMAND',
  '',
  ...Object.values(COMMANDS).map(({ usage, summary }) => `  ${usage}\n      ${summary}`),
  '',
  'The keys lie in the folder that DATA_DIR names (default: data), or in the database of DATABASE_URL.',
].join('\n')

/** Runs the command that the arguments name; resolves to the exit code. */
export async function keys(line: CommandLine): Promise<number> {
  try {
    await run(line)
    return 0
  } catch (error) {
    line.note(failureText(error))
    return EXIT_USAGE
  }
}

async function run(line: CommandLine): Promise<void> {
  const chosen = chooseCommand(COMMANDS, HELP, line)
  if (chosen === undefined) return
  const work = chosen.command.prepare(chosen.args)
  const store = await openStore(readSettings(line.environment), new Date())
  try {
    await work(store, line)
  } finally {
    await store.close()
  }
}

function prepareCreate(args: readonly string[]): Work {
  const { account, kind } = readOptions(args)
  if (account === undefined || !ACCOUNT_NAME.test(account)) {
    throw new OperatorError(
      `The account needs a name without line breaks or tabs: say ${COMMANDS['create']?.usage}`,
    )
  }
  if (!isKeyKind(kind)) {
    const sent = kind === undefined ? 'missing' : `"${kind}"`
    throw new OperatorError(`The kind is ${sent}: say --kind ${KEY_KINDS.join(' or --kind ')}`)
  }
  return async (store, { print, note }) => {
    print(await createKey(store, { account, kind, now: new Date() }))
    note(`Made a key of kind ${kind} for account "${account}". It is shown only now.`)
  }
}

function prepareList(args: readonly string[]): Work {
  refuseArguments(args, 'list')
  return async (store, { print }) => {
    print(['id', 'account', 'kind', 'ends_with', 'created_at', 'revoked_at'].join('\t'))
    for (const key of await listKeys(store)) {
      print([key.id, key.account, key.kind, key.key_end, key.created_at, key.revoked_at ?? ''].join('\t'))
    }
  }
}

function prepareRevoke([id, ...rest]: readonly string[]): Work {
  if (id === undefined) throw new OperatorError('The id is missing: say revoke ID; list shows the ids')
  refuseArguments(rest, 'revoke ID')
  return async (store, { note }) => {
    if (!(await revokeKey(store, id, new Date()))) {
      throw new OperatorError(`No key has the id "${id}": list shows the ids`)
    }
    note(`Revoked key ${id}.`)
  }
}

function readOptions(args: readonly string[]): { account?: string; kind?: string } {
  try {
    const options = { account: { type: 'string' }, kind: { type: 'string' } } as const
    return parseArgs({ args: [...args], options }).values
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new OperatorError(`${message}\nSay ${COMMANDS['create']?.usage}`, { cause: error })
  }
}

function refuseArguments(args: readonly string[], usage: string): void {
  if (args.length > 0) throw new OperatorError(`Unexpected argument "${args[0]}": say ${usage}`)
}

function isKeyKind(kind: string | undefined): kind is KeyKind {
  return KEY_KINDS.some((known) => known === kind)
}

if (import.meta.main) await runAsProcess(keys)
