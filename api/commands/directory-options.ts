/** Reads the arguments of `npm run directories`, before anything is opened. */
import { resolve } from 'node:path'
import { parseArgs, type ParseArgsOptionsConfig } from 'node:util'
import { validate } from 'node-cron'
import { OperatorError } from '../http/errors.ts'
import { cronSchedule } from '../process/cron-schedule.ts'
import type { Connection } from '../scim/directory/connection-store.ts'
import type { DeletionGate } from '../scim/directory/connection-options.ts'
import { MEMBER_MODES, type MemberMode } from '../scim/directory/connection-options.ts'

/** The options of each command. */
const OPTIONS = {
  account: { type: 'string' },
  url: { type: 'string' },
  'token-env': { type: 'string' },
  'token-file': { type: 'string' },
  members: { type: 'string' },
  schedule: { type: 'string' },
  'gate-groups': { type: 'string' },
  'gate-members': { type: 'string' },
  'gate-percent': { type: 'string' },
  'allow-loopback': { type: 'boolean' },
  'allow-private': { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  'allow-deletions': { type: 'boolean' },
} as const satisfies ParseArgsOptionsConfig

type OptionName = keyof typeof OPTIONS

/** The options of `set`. */
export const SET_OPTIONS = [
  ...(['account', 'url', 'token-env', 'token-file', 'members', 'schedule'] as const),
  ...(['gate-groups', 'gate-members', 'gate-percent', 'allow-loopback', 'allow-private'] as const),
]

/** The given options. */
export type Given = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values']

/** The changes of `set` to a connection; missing members stay unchanged. */
export interface ConnectionChanges {
  readonly url: URL | undefined
  readonly token: Connection['token'] | undefined
  readonly members: MemberMode | undefined
  readonly allowLoopback: boolean | undefined
  readonly allowPrivate: boolean | undefined
  readonly gate: Partial<DeletionGate>
  /** Null to switch it off. */
  readonly schedule: { readonly expression: string; readonly first: Date } | null | undefined
}

/**
 * Reads the options of a command; errors quote `usage`.
 * @throws {OperatorError} for an unknown option.
 */
export function readOptions(args: readonly string[], known: readonly OptionName[], usage: string): Given {
  const options = Object.fromEntries(known.map((name) => [name, OPTIONS[name]]))
  try {
    return parseArgs({ args: [...args], options, allowNegative: true }).values
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new OperatorError(`${message}\nSay ${usage}`, { cause: error })
  }
}

/** The account of a command. */
export function readAccount({ account }: Given, usage: string): string {
  if (account === undefined || account === '') throw new OperatorError(`The account is missing: ${usage}`)
  return account
}

/**
 * The changes that the options describe.
 * @throws {OperatorError} that names the option and its allowed values.
 */
export function readChanges(given: Given, now: Date): ConnectionChanges {
  return {
    url: given.url === undefined ? undefined : readUrl(given.url),
    token: readTokenPlace(given),
    members: given.members === undefined ? undefined : readMemberMode(given.members),
    allowLoopback: given['allow-loopback'],
    allowPrivate: given['allow-private'],
    gate: readGate(given),
    schedule: given.schedule === undefined ? undefined : readSchedule(given.schedule, now),
  }
}

function readUrl(text: string): URL {
  if (!URL.canParse(text)) {
    throw new OperatorError(`The address is "${text}": use --url https://HOST/PATH, without /Groups`)
  }
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') {
    throw new OperatorError('The address holds a user or a password: put them into the token instead')
  }
  if (url.search !== '' || url.hash !== '') {
    throw new OperatorError('The address must end with its path: remove everything from ? or # on')
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new OperatorError(`The address begins with ${url.protocol}//: use --url https://…`)
  }
  return url
}

function readTokenPlace(given: Given): Connection['token'] | undefined {
  const variable = given['token-env']
  const file = given['token-file']
  if (variable !== undefined && file !== undefined) {
    throw new OperatorError('The token is missing: use either --token-env VARIABLE or --token-file PATH')
  }
  if (file !== undefined) return { kind: 'file', source: resolve(file) }
  if (variable === undefined) return undefined
  // Never quoted: an invalid name may be the token itself.
  if (!isVariableName(variable)) {
    throw new OperatorError(
      '--token-env takes the name of an environment variable, such as ACME_SCIM_TOKEN, but the value looks like ' +
        'a token: put it into a variable with a name in capital letters, and pass that name',
    )
  }
  return { kind: 'env', source: variable }
}

// Words of names have one case, or a leading capital; tokens are long, and mix cases and digits.
const WORD = /^(?:[A-Z]*|[A-Z]?[a-z]*(?:[A-Z][a-z]{2,})*)$/

function isVariableName(text: string): boolean {
  const words = text.split('_')
  const isUpper = /^[A-Z_][A-Z0-9_]*$/.test(text)
  const isPlain = text !== '' && words.every((word) => WORD.test(word))
  return (isUpper || isPlain) && words.every((word) => word.length <= (/\d/.test(word) ? 12 : 24))
}

function readMemberMode(text: string): MemberMode {
  const mode = MEMBER_MODES.find((known) => known === text)
  if (mode === undefined) {
    throw new OperatorError(`The members are "${text}": use --members ${MEMBER_MODES.join(' or --members ')}`)
  }
  return mode
}

function readGate(given: Given): Partial<DeletionGate> {
  const number = (name: 'gate-groups' | 'gate-members' | 'gate-percent', most: number) => {
    const text = given[name]
    if (text === undefined) return undefined
    if (!/^\d{1,9}$/.test(text) || Number(text) > most) {
      throw new OperatorError(`--${name} is "${text}": use a whole number from 0 to ${most}`)
    }
    return Number(text)
  }
  const [groups, members] = [number('gate-groups', 100_000), number('gate-members', 2_000_000)]
  const percent = number('gate-percent', 100)
  return {
    ...(groups === undefined ? {} : { groups }),
    ...(members === undefined ? {} : { members }),
    ...(percent === undefined ? {} : { percent }),
  }
}

function readSchedule(expression: string, now: Date): ConnectionChanges['schedule'] {
  if (expression === 'off') return null
  const first = validate(expression) ? cronSchedule(expression).next(now) : undefined
  if (first === undefined) {
    throw new OperatorError(
      `The schedule is "${expression}": use a cron expression in UTC, such as --schedule "0 * * * *", or off`,
    )
  }
  return { expression, first }
}
