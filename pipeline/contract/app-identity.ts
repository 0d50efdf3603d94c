/**
 * How apps that have no id of their own are told apart: in chat requests, in raw usage and in the registry alike. The id of
 * an app follows from its address or name alone, so nobody gives ids out: whoever meets the app first, on whatever machine
 * and with or without a database, gives it the same one.
 */
import { createHash } from 'node:crypto'
import { isIP } from 'node:net'

/** Ids from here on follow from identities; other producers of the registry keep below. */
export const FIRST_APP_ID = 1_000_000_000

/**
 * Bits of an identity's hash in its id: every id stays below 2^53. Among a million apps, two share one with a chance of
 * 1 to 9000; whoever registers the second refuses it.
 */
const HASH_BITS = 52n

/** Whether apps that are named for the first time are published (setting NEW_APPS). */
export const NEW_APP_VISIBILITIES = ['public', 'hidden'] as const
export type NewAppVisibility = (typeof NEW_APP_VISIBILITIES)[number]

/** Begins the identity of an app that is known by its name alone. */
export const NAMED = 'local:'

const MAX_IDENTITY_CHARACTERS = 256
const MAX_NAME_CHARACTERS = 80

const LOCAL_HOST = /^[^.]*$|\.(?:localhost|local|internal|lan|test|home\.arpa)$/
// What cannot be seen could make one name look like another, or turn the text around it. Joiners are part of
// emoji and of some scripts.
const INVISIBLE = /(?!\u200C|\u200D|\uFE0F)[\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/gu
const ONLY_JOINERS = /^(?:\s|\u200C|\u200D|\uFE0F)*$/u
const SPACE = /[\s\p{Cc}\p{Z}]+/gu

/** The id of the app with this identity. */
export function appIdOf(identity: string): number {
  const hash = createHash('sha256').update(identity).digest().readBigUInt64BE() >> (64n - HASH_BITS)
  return FIRST_APP_ID + Number(hash)
}

// Without the lookbehind each of many slashes would be tried as the first, which takes the square of their number.
const SLASHES_AT_END = /(?<!\/)\/+$/

/**
 * Host and path of an app's address. Both schemes, `www.` and a slash at the end lead to the same place; query and
 * fragment name no app. An address on a machine or network of somebody's own is that of many apps: there the title counts.
 * Undefined for a text that is no address, or where nothing tells the app from others.
 */
export function identityOfAddress(address: string, title: string | undefined): string | undefined {
  const url = URL.parse(address)
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return undefined
  const host = url.hostname.replace(/\.$/, '')
  if (isLocal(host)) return title === undefined ? undefined : identityOfName(title)
  const port = url.port === '' ? '' : `:${url.port}`
  const identity = `${host.replace(/^www\.(?=.*\.)/, '')}${port}${url.pathname.replace(SLASHES_AT_END, '')}`
  return identity.length > MAX_IDENTITY_CHARACTERS ? undefined : identity
}

/** Many apps have such a host, and it is not to be published. */
function isLocal(host: string): boolean {
  return isIP(host) !== 0 || host.startsWith('[') || LOCAL_HOST.test(host)
}

/** The identity of an app that has a name, as cleanName gives it, and no address: capitals do not count. */
function identityOfName(name: string): string {
  return `${NAMED}${name.toLowerCase()}`
}

/** Text fit to be shown: one line, without what cannot be seen, at most 80 characters; empty when nothing is left. */
export function cleanName(text: string): string {
  const visible = text.toWellFormed().normalize('NFC').replaceAll(INVISIBLE, '').replaceAll(SPACE, ' ').trim()
  if (ONLY_JOINERS.test(visible)) return ''
  return Array.from(visible).slice(0, MAX_NAME_CHARACTERS).join('').trim()
}

/** The name of an app that has none: its host. Not its path, in which clients that send a page's address tell of people. */
export function hostOf(identity: string): string {
  return identity.split('/', 1).join('')
}

type NamedApp = {
  readonly app_id: number
  readonly identity: string
  readonly app_name: string
}

/** The app that a text names, an address with `http://` or `https://` or a name; undefined where it names none. */
export function appNamed(text: string): NamedApp | undefined {
  const isAddress = /^\s*https?:\/\//i.test(text)
  const name = isAddress ? undefined : cleanName(text) || undefined
  const identity = isAddress ? identityOfAddress(text.trim(), undefined) : name && identityOfName(name)
  if (identity === undefined) return undefined
  return { app_id: appIdOf(identity), identity, app_name: name ?? hostOf(identity) }
}
