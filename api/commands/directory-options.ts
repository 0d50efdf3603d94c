/** The options of `npm run directories set`: read before anything is opened, then combined with the connection. */
import { resolve } from 'node:path'
import { validate } from 'node-cron'
import { textOption, UsageError } from '../../pipeline/program/program.ts'
import { cronSchedule } from '../process/cron-schedule.ts'
import { MEMBER_MODES, NEW_CONNECTION, type ConnectionSettings } from '../scim/connections.ts'

type Settings = Partial<ConnectionSettings>

const flag = (help: string) => ({ type: 'boolean', help }) as const

export const SET_OPTIONS = {
  url: textOption('URL', 'the address of the directory, which /Groups follows'),
  'token-env': textOption('VARIABLE', 'the variable of the service that holds the token'),
  'token-file': textOption('PATH', 'a file with mode 0600 that holds the token'),
  'token-url': textOption('URL', 'where a sync requests its token (OAuth), with ?scope=… if that needs one'),
  'client-id': textOption('ID', 'the OAuth client'),
  'client-secret-env': textOption('VARIABLE', 'the variable that holds the secret of the client'),
  'client-secret-file': textOption('PATH', 'a file with mode 0600 that holds it'),
  members: textOption('inline|per_group|off', 'from the list (default), a request per group, or none'),
  schedule: textOption('CRON|off', 'also syncs at these times, in UTC'),
  'gate-groups': textOption('N', 'this many groups may always be removed (default: 5)'),
  'gate-members': textOption('N', 'this many members may always be removed (default: 50)'),
  'gate-percent': textOption('N', 'beyond them, this percentage may be (default: 20)'),
  'allow-private': flag('allows a private network, and this machine'),
  'no-allow-private': flag('reverts it'),
  'allow-loopback': flag('allows this machine, by http too'),
  'no-allow-loopback': flag('reverts it'),
} as const

type Given = Readonly<Record<string, string | boolean | undefined>>

/**
 * The settings in the options of `set`.
 * @throws UsageError that names the option and its allowed values.
 */
export function readOptions(given: Given): Settings {
  const settings = readToken(given)
  for (const [name, value] of Object.entries(given))
    if (value !== undefined) Object.assign(settings, READERS[name]?.(String(value), name))
  return settings
}

/** What an option that names no token sets. */
const READERS: Readonly<Record<string, (value: string, name: string) => Settings>> = {
  url: (address, name) => ({ url: readUrl(address, name) }),
  members: (mode) => ({ members: readMembers(mode) }),
  schedule: readSchedule,
  'gate-groups': (number, name) => ({ gate_groups: readNumber(number, name, 100_000) }),
  'gate-members': (number, name) => ({ gate_members: readNumber(number, name, 500_000) }),
  'gate-percent': (number, name) => ({ gate_percent: readNumber(number, name, 100) }),
  'allow-private': () => ({ allow_private: 1 }),
  'no-allow-private': () => ({ allow_private: 0 }),
  'allow-loopback': () => ({ allow_loopback: 1 }),
  'no-allow-loopback': () => ({ allow_loopback: 0 }),
}

/** The options that name a token, and how they go together. */
const TOKEN = /^(?:token|client)-/
const TOGETHER = [
  'token-env',
  'token-file',
  'token-url client-id client-secret-env',
  'token-url client-id client-secret-file',
]

/** Where a sync finds its token, or the secret of the client that requests one. */
function readToken(given: Given): Settings {
  const names = Object.keys(SET_OPTIONS).filter((name) => TOKEN.test(name) && given[name] !== undefined)
  if (names.length === 0) return {}
  if (!TOGETHER.includes(names.join(' ')))
    throw new UsageError(
      'Use either --token-env VARIABLE, or --token-file PATH, or --token-url URL with --client-id ID and either ' +
        '--client-secret-env VARIABLE or --client-secret-file PATH',
    )
  const source = names.at(-1) ?? ''
  const value = String(given[source])
  const { 'token-url': address, 'client-id': id } = given
  return {
    token_url: address === undefined ? null : readUrl(String(address), 'token-url'),
    client_id: id === undefined ? null : String(id),
    ...(source.endsWith('-env')
      ? { token_kind: 'env', token_source: readVariable(value, source) }
      : { token_kind: 'file', token_source: resolve(value) }),
  }
}

/**
 * The connection with these settings; what is not given stays as it is.
 * @throws UsageError if something is missing.
 */
export function combineSettings(given: Settings, former: ConnectionSettings | undefined): ConnectionSettings {
  const { url, token_kind, token_source, ...rest } = { ...NEW_CONNECTION, ...former, ...given }
  if (url === undefined) throw new UsageError('The address is missing: use --url https://HOST/PATH')
  if (token_kind === undefined || token_source === undefined)
    throw new UsageError(
      'The token is missing: use --token-env VARIABLE, --token-file PATH or --token-url URL',
    )
  return { ...rest, url, token_kind, token_source }
}

function readUrl(address: string, option: string): string {
  const use = `use --${option} https://HOST/PATH`
  const url = URL.parse(address)
  if (url === null) throw new UsageError(`The address is "${address}": ${use}`)
  const { username, password, search, hash, protocol, pathname } = url
  const faults = {
    'holds a user or a password: put them into the token instead': username + password !== '',
    'must end with its path: remove everything from ? or # on':
      hash !== '' || (search !== '' && option !== 'token-url'),
    [`begins with ${protocol}//: ${use}`]: !/^https?:$/.test(protocol),
    [`ends with /Groups, which a sync adds itself: ${use}`]: /\/Groups\/?$/i.test(pathname),
  }
  for (const [fault, isFault] of Object.entries(faults)) {
    if (isFault) throw new UsageError(`The address ${fault}`)
  }
  return url.href
}

/** A word longer than names have, or than names with digits have, is more likely a token. */
const VARIABLE = /^(?!.*[a-z]{25})(?!.*(?=[a-z0-9]{13})[a-z]*\d)[a-z_]\w*$/i

// Never quoted: an invalid name may be the token itself.
function readVariable(name: string, option: string): string {
  if (VARIABLE.test(name)) return name
  throw new UsageError(
    `--${option} takes the name of an environment variable, such as ACME_SCIM_TOKEN, but the value is none or looks like ` +
      'a token: put it into a variable, and pass the name of that',
  )
}

function readMembers(mode: string) {
  const members = MEMBER_MODES.find((known) => known === mode)
  if (members !== undefined) return members
  throw new UsageError(`The members are "${mode}": use --members ${MEMBER_MODES.join(' or --members ')}`)
}

function readNumber(number: string, option: string, most: number): number {
  if (/^\d{1,9}$/.test(number) && Number(number) <= most) return Number(number)
  throw new UsageError(`--${option} is "${number}": use a whole number from 0 to ${most}`)
}

function readSchedule(expression: string): Settings {
  if (expression === 'off') return { schedule: null, next_sync_at: null }
  const first = validate(expression) ? cronSchedule(expression).next(new Date()) : undefined
  if (first !== undefined) return { schedule: expression, next_sync_at: first.toISOString() }
  throw new UsageError(
    `The schedule is "${expression}": use a cron expression in UTC, such as --schedule "0 * * * *", or off`,
  )
}
