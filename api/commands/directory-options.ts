/** The options of `npm run directories set`: read before anything is opened, then combined with the connection. */
import { resolve } from 'node:path'
import { validate } from 'node-cron'
import { OperatorError } from '../http/errors.ts'
import { cronSchedule } from '../process/cron-schedule.ts'
import { isRefusedAddress, type Reach } from '../scim/addresses.ts'
import { MEMBER_MODES, NEW_CONNECTION, type ConnectionSettings } from '../scim/connections.ts'

type Settings = Partial<ConnectionSettings>

interface Option {
  readonly type: 'string' | 'boolean'
  readonly value?: string
  readonly help: string
  /** What it sets of the connection. */
  readonly read: (text: string, option: string) => Settings
}

const text = (value: string, help: string, read: Option['read']): Option => {
  return { type: 'string', value, help, read }
}
const flag = (help: string, settings: Settings): Option => ({ type: 'boolean', help, read: () => settings })
const gate = (name: 'gate_groups' | 'gate_members' | 'gate_percent', most: number, help: string) =>
  text('N', help, (number, option) => ({ [name]: readNumber(number, option, most) }))

const STATIC_TOKEN = { token_url: null, client_id: null }
const fromVariable = (name: string, option: string) => {
  return { token_kind: 'env', token_source: readVariable(name, option) } as const
}
const fromFile = (path: string) => ({ token_kind: 'file', token_source: resolve(path) }) as const

export const SET_OPTIONS = {
  url: text('URL', 'the address of the directory, which /Groups follows', (address, option) => {
    return { url: readUrl(address, option) }
  }),
  'token-env': text('VARIABLE', 'the variable of the service that holds the token', (name, option) => {
    return { ...fromVariable(name, option), ...STATIC_TOKEN }
  }),
  'token-file': text('PATH', 'a file with mode 0600 that holds the token', (path) => {
    return { ...fromFile(path), ...STATIC_TOKEN }
  }),
  'token-url': text('URL', 'where a sync requests its token (OAuth)', (address, option) => {
    return { token_url: readUrl(address, option) }
  }),
  'client-id': text('ID', 'the OAuth client', (client_id) => ({ client_id })),
  'client-secret-env': text('VARIABLE', 'the variable that holds the secret of the client', fromVariable),
  'client-secret-file': text('PATH', 'a file with mode 0600 that holds it', fromFile),
  members: text('inline|per_group|off', 'from the list (default), a request per group, or none', readMembers),
  schedule: text('CRON|off', 'also syncs at these times, in UTC', readSchedule),
  'gate-groups': gate('gate_groups', 100_000, 'this many groups may always be removed (default: 5)'),
  'gate-members': gate('gate_members', 500_000, 'this many members may always be removed (default: 50)'),
  'gate-percent': gate('gate_percent', 100, 'beyond them, this percentage may be (default: 20)'),
  'allow-private': flag('allows a private network, and this machine', { allow_private: 1 }),
  'no-allow-private': flag('reverts it', { allow_private: 0 }),
  'allow-loopback': flag('allows this machine, by http too', { allow_loopback: 1 }),
  'no-allow-loopback': flag('reverts it', { allow_loopback: 0 }),
} as const satisfies Readonly<Record<string, Option>>

type Given = Readonly<Record<string, string | boolean | undefined>>

/**
 * The settings in the options of `set`.
 * @throws {OperatorError} that names the option and its allowed values.
 */
export function readSettings(given: Given): Settings {
  refuseCombination(new Set(Object.keys(given).filter((name) => given[name] !== undefined)))
  const settings: Settings = {}
  for (const [name, { read }] of Object.entries<Option>(SET_OPTIONS)) {
    if (given[name] !== undefined) Object.assign(settings, read(String(given[name]), `--${name}`))
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
  if (token_kind === undefined || token_source === undefined)
    throw new OperatorError(
      'The token is missing: use --token-env VARIABLE, --token-file PATH or --token-url URL',
    )
  for (const address of [url, rest.token_url ?? url]) refuseUnreachable(new URL(address), rest)
  return { ...rest, url, token_kind, token_source }
}

const TOKENS = new Set(['token-env', 'token-file', 'token-url'])
const SECRETS = new Set(['client-secret-env', 'client-secret-file'])

function refuseCombination(given: ReadonlySet<string>): void {
  const secrets = SECRETS.intersection(given).size
  const isWhole = given.has('client-id') && secrets === 1
  if (TOKENS.intersection(given).size > 1)
    throw new OperatorError('Use either --token-env VARIABLE, --token-file PATH or --token-url URL')
  if (given.has('token-url') && !isWhole)
    throw new OperatorError(
      '--token-url needs --client-id ID and either --client-secret-env VARIABLE or --client-secret-file PATH',
    )
  if (!given.has('token-url') && (given.has('client-id') || secrets > 0))
    throw new OperatorError('The OAuth client needs --token-url URL, where its token is requested')
}

function readUrl(address: string, option: string): string {
  const use = `use ${option} https://HOST/PATH`
  const url = URL.parse(address)
  if (url === null) throw new OperatorError(`The address is "${address}": ${use}`)
  const { username, password, search, hash, protocol, pathname } = url
  const faults = {
    'holds a user or a password: put them into the token instead': username + password !== '',
    'must end with its path: remove everything from ? or # on': search + hash !== '',
    [`begins with ${protocol}//: ${use}`]: !/^https?:$/.test(protocol),
    [`ends with /Groups, which a sync adds itself: ${use}`]: /\/Groups\/?$/i.test(pathname),
  }
  for (const [fault, isFault] of Object.entries(faults)) {
    if (isFault) throw new OperatorError(`The address ${fault}`)
  }
  return url.href
}

/** A word longer than names have, or than names with digits have, is more likely a token. */
const VARIABLE = /^(?!.*[a-z]{25})(?!.*(?=[a-z0-9]{13})[a-z]*\d)[a-z_]\w*$/i

// Never quoted: an invalid name may be the token itself.
function readVariable(name: string, option: string): string {
  if (VARIABLE.test(name)) return name
  throw new OperatorError(
    `${option} takes the name of an environment variable, such as ACME_SCIM_TOKEN, but the value is none or looks like ` +
      'a token: put it into a variable, and pass the name of that',
  )
}

function readMembers(mode: string): Settings {
  const members = MEMBER_MODES.find((known) => known === mode)
  if (members !== undefined) return { members }
  throw new OperatorError(`The members are "${mode}": use --members ${MEMBER_MODES.join(' or --members ')}`)
}

function readNumber(number: string, option: string, most: number): number {
  if (/^\d{1,9}$/.test(number) && Number(number) <= most) return Number(number)
  throw new OperatorError(`${option} is "${number}": use a whole number from 0 to ${most}`)
}

function readSchedule(expression: string): Settings {
  if (expression === 'off') return { schedule: null, next_sync_at: null }
  const first = validate(expression) ? cronSchedule(expression).next(new Date()) : undefined
  if (first !== undefined) return { schedule: expression, next_sync_at: first.toISOString() }
  throw new OperatorError(
    `The schedule is "${expression}": use a cron expression in UTC, such as --schedule "0 * * * *", or off`,
  )
}

/** Rejects an address that every sync would reject, while the operator is present. */
function refuseUnreachable({ protocol, hostname }: URL, reach: Reach): void {
  if (protocol === 'http:' && reach.allow_loopback + reach.allow_private === 0)
    throw new OperatorError(
      'The address begins with http://: use https://, or http:// to this machine with --allow-loopback',
    )
  // This name is always this machine (RFC 6761, 6.3).
  const host = /^(?:.+\.)?localhost\.?$/.test(hostname) ? '127.0.0.1' : hostname
  if (!isRefusedAddress(host, protocol, reach)) return
  throw new OperatorError(
    `No sync may connect to ${hostname}: use another --url, or --allow-private for an address of a private network ` +
      '(by https) or of this machine, or --allow-loopback for one of this machine alone; link-local and reserved ' +
      'addresses are never allowed',
  )
}
