/**
 * Identifies apps without an id: in chat requests, raw usage and the registry alike. The id follows from the app's address
 * or name alone, so every machine computes the same id, with or without a database.
 */
import { createHash } from 'node:crypto'
import { isIP } from 'node:net'

/** Ids from here on follow from identities; other producers of the registry use lower ones. */
export const FIRST_APP_ID = 1_000_000_000

/**
 * Bits of an identity's hash in its id: every id stays below 2^53. Among a million apps the chance of a collision is
 * 1 to 9000; registering the second app of a pair fails.
 */
const HASH_BITS = 52n

/** Whether apps that appear for the first time are published (setting NEW_APPS). */
export const NEW_APP_VISIBILITIES = ['public', 'hidden'] as const
export type NewAppVisibility = (typeof NEW_APP_VISIBILITIES)[number]

/** Prefix of the identity of an app with a name only. */
export const NAMED_PREFIX = 'local:'

const MAX_IDENTITY_CHARACTERS = 256
const MAX_NAME_CHARACTERS = 80

const LOCAL_HOST = /^[^.]*$|\.(?:localhost|local|internal|lan|test|home\.arpa)$/
// Invisible characters could make two names look alike, or reverse the text around them. Joiners are part of emoji and
// of some scripts.
const INVISIBLE = /(?!\u200C|\u200D|\uFE0F)[\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/gu
const ONLY_JOINERS = /^(?:\s|\u200C|\u200D|\uFE0F)*$/u
const SPACE = /[\s\p{Cc}\p{Z}]+/gu

/** The id of the app with this identity. */
export function appIdOf(identity: string): number {
  const hash = createHash('sha256').update(identity).digest().readBigUInt64BE() >> (64n - HASH_BITS)
  return FIRST_APP_ID + Number(hash)
}

// Without the lookbehind, many slashes take quadratic time: each would be tried as the first.
const SLASHES_AT_END = /(?<!\/)\/+$/

/**
 * Host and path of an app's address. Both schemes, `www.` and a final slash lead to the same place; query and fragment
 * identify no app. Many apps share a private or local address; for these the title counts. Undefined if the text is not an
 * address, or if the address is shared and there is no title.
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

/** Hosts that many apps share and that must not be published. */
function isLocal(host: string): boolean {
  return isIP(host) !== 0 || host.startsWith('[') || LOCAL_HOST.test(host)
}

/** The identity of an app with a name (from cleanName) and no address; capitals do not count. */
function identityOfName(name: string): string {
  return `${NAMED_PREFIX}${name.toLowerCase()}`
}

/** Text fit for display: one line of at most 80 visible characters; may be empty. */
export function cleanName(text: string): string {
  const visible = text.toWellFormed().normalize('NFC').replaceAll(INVISIBLE, '').replaceAll(SPACE, ' ').trim()
  if (ONLY_JOINERS.test(visible)) return ''
  return Array.from(visible).slice(0, MAX_NAME_CHARACTERS).join('').trim()
}

/** The name of an app without one: its host. A path may contain personal data, since some clients send the page's address. */
function hostOf(identity: string): string {
  return identity.split('/', 1).join('')
}

type NamedApp = {
  readonly app_id: number
  readonly identity: string
  readonly app_name: string
}

/** The app that a text identifies by an `http://` or `https://` address or by a name; undefined if it identifies none. */
export function appNamed(text: string): NamedApp | undefined {
  const isAddress = /^\s*https?:\/\//i.test(text)
  const name = isAddress ? undefined : cleanName(text) || undefined
  const identity = isAddress ? identityOfAddress(text.trim(), undefined) : name && identityOfName(name)
  if (identity === undefined) return undefined
  return { app_id: appIdOf(identity), identity, app_name: name ?? hostOf(identity) }
}
