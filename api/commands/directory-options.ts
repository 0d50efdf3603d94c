/** The options of `npm run directories set`: read before anything is opened, then combined with the connection. */
import { resolve } from 'node:path'
import type { ParseArgsOptionsConfig } from 'node:util'
import { validate } from 'node-cron'
import { OperatorError } from '../http/errors.ts'
import { cronSchedule } from '../process/cron-schedule.ts'
import { AddressRefused, checkLiteralAddress, type Reach } from '../scim/addresses.ts'
import { MEMBER_MODES, NEW_CONNECTION, type ConnectionSettings } from '../scim/connections.ts'

type Settings = Partial<ConnectionSettings>

const STATIC_TOKEN = { token_url: null, client_id: null }
const fromVariable = (name: string, option: string) => {
  return { token_kind: 'env', token_source: readVariable(name, option) } as const
}
const fromFile = (path: string) => ({ token_kind: 'file', token_source: resolve(path) }) as const

/** What each option sets of the connection. */
const OPTIONS: Readonly<Record<string, (text: string, option: string) => Settings>> = {
  url: (text, option) => ({ url: readUrl(text, option) }),
  'token-env': (name, option) => ({ ...fromVariable(name, option), ...STATIC_TOKEN }),
  'token-file': (path) => ({ ...fromFile(path), ...STATIC_TOKEN }),
  'token-url': (text, option) => ({ token_url: readUrl(text, option) }),
  'client-id': (client_id) => ({ client_id }),
  'client-secret-env': fromVariable,
  'client-secret-file': fromFile,
  members: (text) => ({ members: readMemberMode(text) }),
  schedule: readSchedule,
  'gate-groups': (text, option) => ({ gate_groups: readNumber(text, option, 100_000) }),
  'gate-members': (text, option) => ({ gate_members: readNumber(text, option, 500_000) }),
  'gate-percent': (text, option) => ({ gate_percent: readNumber(text, option, 100) }),
}
const FLAGS = { 'allow-loopback': 'allow_loopback', 'allow-private': 'allow_private' } as const

export const SET_OPTIONS: ParseArgsOptionsConfig = {
  ...Object.fromEntries(Object.keys(OPTIONS).map((name) => [name, { type: 'string' }])),
  ...Object.fromEntries(Object.keys(FLAGS).map((name) => [name, { type: 'boolean' }])),
}

type Given = Readonly<Record<string, unknown>>

/**
 * The settings in the options of `set`.
 * @throws {OperatorError} that names the option and its allowed values.
 */
export function readSettings(given: Given): Settings {
  refuseCombination(given)
  const settings: Settings = {}
  for (const [name, read] of Object.entries(OPTIONS)) {
    const text = given[name]
    if (typeof text === 'string') Object.assign(settings, read(text, `--${name}`))
  }
  for (const [name, column] of Object.entries(FLAGS)) {
    if (given[name] !== undefined) Object.assign(settings, { [column]: Number(given[name]) })
  }
  return settings
}

/**
 * The connection with these settings; what is not given stays as it is.
 * @throws {OperatorError} if something is missing, or no sync could reach the address.
 */
export function combineSettings(given: Settings, former: ConnectionSettings | undefined): ConnectionSettings {
  const { url, token_kind, token_source, ...rest } = { ...NEW_CONNECTION, ...former, ...given }
  if (url === undefined) throw new OperatorError('The address is missing: use --url https://HOST/PATH')
  if (token_kind === undefined || token_source === undefined) {
    throw new OperatorError(
      'The token is missing: use --token-env VARIABLE, --token-file PATH or --token-url URL',
    )
  }
  for (const address of [url, rest.token_url ?? url]) refuseUnreachable(new URL(address), rest)
  return { ...rest, url, token_kind, token_source }
}

function refuseCombination(given: Given): void {
  const countOf = (...names: string[]) => names.filter((name) => given[name] !== undefined).length
  if (countOf('token-env', 'token-file', 'token-url') > 1) {
    throw new OperatorError('Use either --token-env VARIABLE, --token-file PATH or --token-url URL')
  }
  const [ids, secrets] = [countOf('client-id'), countOf('client-secret-env', 'client-secret-file')]
  if (countOf('token-url') === 0 && ids + secrets > 0) {
    throw new OperatorError('The OAuth client needs --token-url URL, where its token is requested')
  }
  if (countOf('token-url') > 0 && (ids === 0 || secrets !== 1)) {
    throw new OperatorError(
      '--token-url needs --client-id ID and either --client-secret-env VARIABLE or --client-secret-file PATH',
    )
  }
}

function readUrl(text: string, option: string): string {
  const use = `use ${option} https://HOST/PATH`
  const url = URL.parse(text)
  if (url === null) throw new OperatorError(`The address is "${text}": ${use}`)
  if (url.username !== '' || url.password !== '') {
    throw new OperatorError('The address holds a user or a password: put them into the token instead')
  }
  if (url.search !== '' || url.hash !== '') {
    throw new OperatorError('The address must end with its path: remove everything from ? or # on')
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new OperatorError(`The address begins with ${url.protocol}//: ${use}`)
  }
  if (/\/Groups\/?$/i.test(url.pathname)) {
    throw new OperatorError(`The address ends with /Groups, which a sync adds itself: ${use}`)
  }
  return url.href
}

/** A word longer than names have, or than names with digits have, is more likely a token. */
const VARIABLE = /^(?!.*[A-Z]{25})(?!.*(?=[A-Z0-9]{13})[A-Z]*\d)[A-Z_][A-Z0-9_]*$/

// Never quoted: an invalid name may be the token itself.
function readVariable(name: string, option: string): string {
  if (VARIABLE.test(name)) return name
  throw new OperatorError(
    `${option} takes the name of an environment variable in capital letters, such as ACME_SCIM_TOKEN, but the value ` +
      'looks like a token: put it into a variable, and pass the name of that',
  )
}

function readMemberMode(text: string): ConnectionSettings['members'] {
  const mode = MEMBER_MODES.find((known) => known === text)
  if (mode !== undefined) return mode
  throw new OperatorError(`The members are "${text}": use --members ${MEMBER_MODES.join(' or --members ')}`)
}

function readNumber(text: string, option: string, most: number): number {
  if (/^\d{1,9}$/.test(text) && Number(text) <= most) return Number(text)
  throw new OperatorError(`${option} is "${text}": use a whole number from 0 to ${most}`)
}

function readSchedule(expression: string): Settings {
  if (expression === 'off') return { schedule: null, next_sync_at: null }
  const first = validate(expression) ? cronSchedule(expression).next(new Date()) : undefined
  if (first !== undefined) return { schedule: expression, next_sync_at: first.toISOString() }
  throw new OperatorError(
    `The schedule is "${expression}": use a cron expression in UTC, such as --schedule "0 * * * *", or off`,
  )
}

const LOCAL_NAME = /^(?:.+\.)?localhost\.?$/

// Rejects an address that every sync would reject, while the operator is present.
function refuseUnreachable(url: URL, reach: Reach): void {
  if (url.protocol === 'http:' && reach.allow_loopback + reach.allow_private === 0) {
    throw new OperatorError(
      'The address begins with http://: use https://, or http:// to this machine with --allow-loopback',
    )
  }
  try {
    checkLiteralAddress(url, reach)
    // This name is always this machine (RFC 6761, 6.3).
    if (LOCAL_NAME.test(url.hostname)) checkLiteralAddress(new URL(`${url.protocol}//127.0.0.1`), reach)
  } catch (error) {
    if (!(error instanceof AddressRefused)) throw error
    throw new OperatorError(
      `No sync may connect to ${url.hostname}: use another --url, or --allow-private for an address of a private ` +
        'network (by https) or of this machine, or --allow-loopback for one of this machine alone; link-local and ' +
        'reserved addresses are never allowed',
    )
  }
}
