/** The options of `npm run directories set`: read before anything is opened, then combined with the connection. */
import { resolve } from 'node:path'
import type { ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { validate } from 'node-cron'
import { OperatorError } from '../http/errors.ts'
import { cronSchedule } from '../process/cron-schedule.ts'
import { AddressRefused, checkLiteralAddress } from '../scim/addresses.ts'
import { DEFAULT_GATE, MEMBER_MODES, type Connection, type ConnectionWanted } from '../scim/connections.ts'

export const SET_OPTIONS = {
  account: { type: 'string' },
  url: { type: 'string' },
  'token-env': { type: 'string' },
  'token-file': { type: 'string' },
  'token-url': { type: 'string' },
  'client-id': { type: 'string' },
  'client-secret-env': { type: 'string' },
  'client-secret-file': { type: 'string' },
  members: { type: 'string' },
  schedule: { type: 'string' },
  'gate-groups': { type: 'string' },
  'gate-members': { type: 'string' },
  'gate-percent': { type: 'string' },
  'allow-loopback': { type: 'boolean' },
  'allow-private': { type: 'boolean' },
} as const satisfies ParseArgsOptionsConfig

type Given = ReturnType<typeof parseArgs<{ options: typeof SET_OPTIONS }>>['values']
type Token = Pick<ConnectionWanted, 'token' | 'oauth'>

/** The connection as it should be, from the one that exists. */
export type Change = (former: Connection | undefined) => ConnectionWanted

/**
 * Reads the options of `set`. What is not given stays as it is.
 * @throws {OperatorError} that names the option and its allowed values; so does the returned function, if something is
 * missing or no sync could reach the address.
 */
export function readChange(given: Given, now: Date): Change {
  const url = given.url === undefined ? undefined : readUrl(given.url, '--url https://HOST/PATH')
  const token = readToken(given)
  const members = given.members === undefined ? undefined : readMemberMode(given.members)
  const gate = readGate(given)
  const schedule = given.schedule === undefined ? undefined : readSchedule(given.schedule, now)
  return (former) => {
    const { url: address, token: source, oauth } = { ...placeOf(former), ...(url && { url }), ...token }
    if (address === undefined) throw new OperatorError('The address is missing: use --url https://HOST/PATH')
    if (source === undefined) {
      throw new OperatorError(
        'The token is missing: use --token-env VARIABLE, --token-file PATH or --token-url URL',
      )
    }
    const kept = former ?? NEW
    const reach = { ...kept.reach, ...readReach(given) }
    refuseUnreachable(address, reach)
    if (oauth !== null) refuseUnreachable(oauth.url, reach)
    const { schedule: expression, nextSyncAt } = schedule ?? kept
    return {
      url: address,
      token: source,
      oauth,
      members: members ?? kept.members,
      reach,
      gate: { ...kept.gate, ...gate },
      schedule: expression,
      nextSyncAt,
    }
  }
}

const NEW: Pick<ConnectionWanted, 'members' | 'reach' | 'gate' | 'schedule' | 'nextSyncAt'> = {
  members: 'inline',
  reach: { allowLoopback: false, allowPrivate: false },
  gate: DEFAULT_GATE,
  schedule: null,
  nextSyncAt: null,
}

function placeOf(
  former: Connection | undefined,
): Partial<Pick<Connection, 'url' | 'token'>> & Pick<Token, 'oauth'> {
  return former === undefined
    ? { oauth: null }
    : { url: former.url, token: former.token, oauth: former.oauth }
}

function readReach(given: Given): Partial<Connection['reach']> {
  const { 'allow-loopback': allowLoopback, 'allow-private': allowPrivate } = given
  return {
    ...(allowLoopback !== undefined && { allowLoopback }),
    ...(allowPrivate !== undefined && { allowPrivate }),
  }
}

function readUrl(text: string, use: string): URL {
  if (!URL.canParse(text)) throw new OperatorError(`The address is "${text}": use ${use}`)
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') {
    throw new OperatorError('The address holds a user or a password: put them into the token instead')
  }
  if (url.search !== '' || url.hash !== '') {
    throw new OperatorError('The address must end with its path: remove everything from ? or # on')
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new OperatorError(`The address begins with ${url.protocol}//: use ${use}`)
  }
  if (/\/Groups\/?$/i.test(url.pathname)) {
    throw new OperatorError(`The address ends with /Groups, which a sync adds itself: use ${use}`)
  }
  return url
}

function readToken(given: Given): Token | undefined {
  const { 'token-env': variable, 'token-file': file, 'token-url': tokenUrl } = given
  if ([variable, file, tokenUrl].filter((way) => way !== undefined).length > 1) {
    throw new OperatorError('Use either --token-env VARIABLE, --token-file PATH or --token-url URL')
  }
  if (tokenUrl !== undefined) return readOauth(given, readUrl(tokenUrl, '--token-url https://HOST/PATH'))
  if (CLIENT_OPTIONS.some((option) => given[option] !== undefined)) {
    throw new OperatorError('The OAuth client needs --token-url URL, where its token is requested')
  }
  const token = readSource(variable, file, '--token-env')
  return token === undefined ? undefined : { token, oauth: null }
}

const CLIENT_OPTIONS = ['client-id', 'client-secret-env', 'client-secret-file'] as const

function readOauth(given: Given, url: URL): Token {
  const { 'client-id': clientId = '', 'client-secret-env': variable, 'client-secret-file': file } = given
  const secret = readSource(variable, file, '--client-secret-env')
  if (clientId === '' || secret === undefined || (variable !== undefined && file !== undefined)) {
    throw new OperatorError(
      '--token-url needs --client-id ID and either --client-secret-env VARIABLE or --client-secret-file PATH',
    )
  }
  return { token: secret, oauth: { url, clientId } }
}

function readSource(
  variable: string | undefined,
  file: string | undefined,
  option: string,
): Connection['token'] | undefined {
  if (file !== undefined) return { kind: 'file', source: resolve(file) }
  if (variable === undefined) return undefined
  // Never quoted: an invalid name may be the token itself.
  if (!isVariableName(variable)) {
    throw new OperatorError(
      `${option} takes the name of an environment variable, such as ACME_SCIM_TOKEN, but the value looks like ` +
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

function readMemberMode(text: string): Connection['members'] {
  const mode = MEMBER_MODES.find((known) => known === text)
  if (mode === undefined) {
    throw new OperatorError(`The members are "${text}": use --members ${MEMBER_MODES.join(' or --members ')}`)
  }
  return mode
}

function readGate(given: Given): Partial<Connection['gate']> {
  const limits = { groups: 100_000, members: 500_000, percent: 100 } as const
  const gate: Partial<Record<keyof typeof limits, number>> = {}
  for (const name of ['groups', 'members', 'percent'] as const) {
    const text = given[`gate-${name}`]
    if (text === undefined) continue
    if (!/^\d{1,9}$/.test(text) || Number(text) > limits[name]) {
      throw new OperatorError(`--gate-${name} is "${text}": use a whole number from 0 to ${limits[name]}`)
    }
    gate[name] = Number(text)
  }
  return gate
}

function readSchedule(expression: string, now: Date): Pick<ConnectionWanted, 'schedule' | 'nextSyncAt'> {
  if (expression === 'off') return { schedule: null, nextSyncAt: null }
  const first = validate(expression) ? cronSchedule(expression).next(now) : undefined
  if (first === undefined) {
    throw new OperatorError(
      `The schedule is "${expression}": use a cron expression in UTC, such as --schedule "0 * * * *", or off`,
    )
  }
  return { schedule: expression, nextSyncAt: first.toISOString() }
}

const LOCAL_NAME = /^(?:.+\.)?localhost\.?$/

// Rejects an address that every sync would reject, while the operator is present.
function refuseUnreachable(url: URL, reach: Connection['reach']): void {
  if (url.protocol === 'http:' && !reach.allowLoopback && !reach.allowPrivate) {
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
