/** The arguments of `npm run directories`, checked before anything is opened. */
import { resolve } from 'node:path'
import { parseArgs, type ParseArgsOptionsConfig } from 'node:util'
import { validate } from 'node-cron'
import { cronSchedule } from '../process/cron-schedule.ts'
import { OperatorError } from '../http/errors.ts'
import type { Connection, ConnectionWanted } from '../scim/directory/connection-store.ts'
import { MEMBER_MODES, type MemberMode } from '../scim/directory/member-mode.ts'

/** The options each command knows. */
const OPTIONS = {
  account: { type: 'string' },
  url: { type: 'string' },
  'token-env': { type: 'string' },
  'token-file': { type: 'string' },
  members: { type: 'string' },
  schedule: { type: 'string' },
  'allow-loopback': { type: 'boolean' },
  'allow-private': { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  'allow-deletions': { type: 'boolean' },
} as const satisfies ParseArgsOptionsConfig

type OptionName = keyof typeof OPTIONS

const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** The options as given. */
export type Given = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values']

/**
 * Reads the options of a command; `usage` is named in faults.
 * @throws {OperatorError} on an option that the command does not know.
 */
export function readOptions(args: readonly string[], known: readonly OptionName[], usage: string): Given {
  const options = Object.fromEntries(known.map((name) => [name, OPTIONS[name]]))
  try {
    return parseArgs({ args: [...args], options }).values
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new OperatorError(`${message}\nSay ${usage}`, { cause: error })
  }
}

/** The account that a command is about. */
export function readAccount({ account }: Given, usage: string): string {
  if (account === undefined || account === '') throw new OperatorError(`The account is missing: say ${usage}`)
  return account
}

/**
 * The connection that the options describe.
 * @throws {OperatorError} that names the option and what it may be.
 */
export function readConnection(given: Given, now: Date): ConnectionWanted {
  const reach = {
    allowLoopback: given['allow-loopback'] ?? false,
    allowPrivate: given['allow-private'] ?? false,
  }
  const schedule = given.schedule ?? null
  return {
    url: readUrl(given.url, reach),
    token: readTokenPlace(given),
    members: readMemberMode(given.members),
    reach,
    schedule,
    nextSyncAt: schedule === null ? null : firstMoment(schedule, now).toISOString(),
  }
}

function readUrl(text: string | undefined, reach: Connection['reach']): URL {
  if (text === undefined || !URL.canParse(text)) {
    throw new OperatorError(
      `The address is "${text ?? ''}": say --url https://HOST/PATH, where /Groups follows`,
    )
  }
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') {
    throw new OperatorError('The address holds a user or a password: say them in the token instead')
  }
  if (url.search !== '' || url.hash !== '') {
    throw new OperatorError('The address must end with its path: nothing may follow from ? or # on')
  }
  if (url.protocol === 'https:') return url
  if (url.protocol === 'http:' && reach.allowLoopback) return url
  throw new OperatorError(
    `The address begins with ${url.protocol}//: say --url https://…, or http://… to this machine with --allow-loopback`,
  )
}

function readTokenPlace(given: Given): Connection['token'] {
  const variable = given['token-env']
  const file = given['token-file']
  if ((variable === undefined) === (file === undefined)) {
    throw new OperatorError('Where is the token? Say either --token-env VARIABLE or --token-file PATH')
  }
  if (file !== undefined) return { kind: 'file', source: resolve(file) }
  // Never quoted: what is no name may be the token itself, typed in the wrong place.
  if (!VARIABLE_NAME.test(variable ?? '')) {
    throw new OperatorError('--token-env takes the name of an environment variable, not the token')
  }
  return { kind: 'env', source: variable ?? '' }
}

function readMemberMode(text = 'inline'): MemberMode {
  const mode = MEMBER_MODES.find((known) => known === text)
  if (mode === undefined) {
    throw new OperatorError(`The members are "${text}": say --members ${MEMBER_MODES.join(' or --members ')}`)
  }
  return mode
}

function firstMoment(schedule: string, now: Date): Date {
  const first = validate(schedule) ? cronSchedule(schedule).next(now) : undefined
  if (first === undefined) {
    throw new OperatorError(
      `The schedule is "${schedule}": say a cron expression in UTC, for instance --schedule "0 * * * *"`,
    )
  }
  return first
}
