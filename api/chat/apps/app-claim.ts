/** What the headers of a request say about the app that sent it (CONTRACT 6). */
import { isIP } from 'node:net'
import { SUBCATEGORIES, type Subcategory } from '../../../pipeline/contract/taxonomy.ts'

/** An app as a request names it. Anybody may claim anything: nothing here is proved. */
export interface AppClaim {
  /** Host and path of the app's address; of an app without a public address, `local:` and its title. */
  readonly identity: string
  readonly title: string | undefined
  readonly subcategories: readonly Subcategory[]
}

export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>

const MAX_IDENTITY_CHARACTERS = 256
const MAX_TITLE_CHARACTERS = 80
const MAX_CATEGORIES = 2

const ADDRESS_HEADER = 'http-referer'
// With or without the prefix of a service in the middle.
const TITLE_HEADER = /^x-(?:.+-)?title$/i
const CATEGORIES_HEADER = /^x-(?:.+-)?categories$/i

const LOCAL_HOST = /^[^.]*$|\.(?:localhost|local|internal|lan|test|home\.arpa)$/
// What cannot be seen could make one name look like another, or turn the text around it. Joiners are part of
// emoji and of some scripts.
const INVISIBLE = /(?!\u200C|\u200D|\uFE0F)[\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/gu
const ONLY_JOINERS = /^(?:\s|\u200C|\u200D|\uFE0F)*$/u
// The same bytes in UTF-8 and Latin-1.
const PLAIN = /^[\x20-\x7E]*$/
const SPACE = /[\s\p{Cc}\p{Z}]+/gu

/** Those of the headers that say something of the app: all that readAppClaim looks at. */
export function appHeaders(headers: RequestHeaders): RequestHeaders {
  const telling: Record<string, string | string[] | undefined> = {}
  for (const name in headers) if (isTelling(name)) telling[name] = headers[name]
  return telling
}

function isTelling(name: string): boolean {
  return name === ADDRESS_HEADER || TITLE_HEADER.test(name) || CATEGORIES_HEADER.test(name)
}

/** The app that the headers name; undefined when they name none that can be told from others. */
export function readAppClaim(headers: RequestHeaders): AppClaim | undefined {
  const title = readTitle(headers)
  const identity = identityOf(headerText(headers, ADDRESS_HEADER), title)
  if (identity === undefined) return undefined
  return { identity, title, subcategories: readSubcategories(headers) }
}

function identityOf(address: string | undefined, title: string | undefined): string | undefined {
  const url = address === undefined ? null : URL.parse(address)
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return undefined
  // Both schemes, `www.` and a slash at the end lead to the same place; query and fragment do not name an app.
  const host = url.hostname.replace(/\.$/, '')
  if (isLocal(host)) return title === undefined ? undefined : `local:${title.toLowerCase()}`
  const port = url.port === '' ? '' : `:${url.port}`
  const identity = `${host.replace(/^www\.(?=.*\.)/, '')}${port}${url.pathname.replace(/\/+$/, '')}`
  return identity.length > MAX_IDENTITY_CHARACTERS ? undefined : identity
}

/** Whether a host is somebody's own machine or network: many apps have that address, and it is not to be published. */
function isLocal(host: string): boolean {
  return isIP(host) !== 0 || host.startsWith('[') || LOCAL_HOST.test(host)
}

function readTitle(headers: RequestHeaders): string | undefined {
  const names = Object.keys(headers).filter((name) => TITLE_HEADER.test(name))
  for (const name of names.toSorted(shorterFirst)) {
    const title = cleanTitle(headerText(headers, name) ?? '')
    if (title !== '') return title
  }
  return undefined
}

function shorterFirst(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : 1)
}

/** Text fit to be shown: one line, without what cannot be seen, at most 80 characters; empty when nothing is left. */
function cleanTitle(text: string): string {
  const visible = text.toWellFormed().normalize('NFC').replaceAll(INVISIBLE, '').replaceAll(SPACE, ' ').trim()
  if (ONLY_JOINERS.test(visible)) return ''
  return Array.from(visible).slice(0, MAX_TITLE_CHARACTERS).join('').trim()
}

function readSubcategories(headers: RequestHeaders): Subcategory[] {
  const sent = Object.keys(headers)
    .filter((name) => CATEGORIES_HEADER.test(name))
    .toSorted(shorterFirst)
    .flatMap((name) => (headerText(headers, name) ?? '').split(','))
    .map((text) => text.trim().toLowerCase())
  return SUBCATEGORIES.filter((known) => sent.includes(known))
    .toSorted((a, b) => sent.indexOf(a) - sent.indexOf(b))
    .slice(0, MAX_CATEGORIES)
}

/** A header's text: bytes that are UTF-8 are read as such, others as Latin-1, which HTTP says they are. */
function headerText(headers: RequestHeaders, name: string): string | undefined {
  const value = headers[name]
  const text = Array.isArray(value) ? value.join(', ') : value
  if (text === undefined || PLAIN.test(text)) return text
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1'))
  } catch {
    return text
  }
}
