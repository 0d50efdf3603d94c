/** What the headers of a request say about the app that sent it (CONTRACT 6). */
import { cleanName, identityOfAddress } from '../../../pipeline/contract/app-identity.ts'
import { SUBCATEGORIES, type Subcategory } from '../../../pipeline/contract/taxonomy.ts'

/** An app as a request names it. Anybody may claim anything: nothing here is proved. */
export interface AppClaim {
  /** Host and path of the app's address; of an app without a public address, `local:` and its title. */
  readonly identity: string
  readonly title: string | undefined
  readonly subcategories: readonly Subcategory[]
}

/** Header lines by name in lower case. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

const MAX_CATEGORIES = 2

const ADDRESS_HEADER = 'http-referer'
// With or without the prefix of a service in the middle.
const TITLE_HEADER = /^x-(?:.+-)?title$/i
const CATEGORIES_HEADER = /^x-(?:.+-)?categories$/i

// The same bytes in UTF-8 and Latin-1.
const PLAIN = /^[\x20-\x7E]*$/

/** Those of the headers that say something of the app: all that readAppClaim looks at. */
export function appHeaders(headers: RequestHeaders): RequestHeaders {
  const telling: Record<string, RequestHeaders[string]> = {}
  for (const name in headers) if (isTelling(name)) telling[name] = headers[name]
  return telling
}

function isTelling(name: string): boolean {
  return name === ADDRESS_HEADER || TITLE_HEADER.test(name) || CATEGORIES_HEADER.test(name)
}

/** The app that the headers name; undefined when they name none that can be told from others. */
export function readAppClaim(headers: RequestHeaders): AppClaim | undefined {
  const title = readTitle(headers)
  const address = headerText(headers, ADDRESS_HEADER)
  const identity = address === undefined ? undefined : identityOfAddress(address, title)
  if (identity === undefined) return undefined
  return { identity, title, subcategories: readSubcategories(headers) }
}

function readTitle(headers: RequestHeaders): string | undefined {
  const names = Object.keys(headers).filter((name) => TITLE_HEADER.test(name))
  for (const name of names.toSorted(shorterFirst)) {
    const title = cleanName(headerText(headers, name) ?? '')
    if (title !== '') return title
  }
  return undefined
}

function shorterFirst(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : 1)
}

function readSubcategories(headers: RequestHeaders): Subcategory[] {
  const sent = Object.keys(headers)
    .filter((name) => CATEGORIES_HEADER.test(name))
    .toSorted(shorterFirst)
    .flatMap((name) => headerLines(headers, name).flatMap((line) => line.split(',')))
    .map((text) => text.trim().toLowerCase())
  return SUBCATEGORIES.filter((known) => sent.includes(known))
    .toSorted((a, b) => sent.indexOf(a) - sent.indexOf(b))
    .slice(0, MAX_CATEGORIES)
}

/** The text of a header; of one that is repeated the first, since several addresses are no address. */
function headerText(headers: RequestHeaders, name: string): string | undefined {
  return headerLines(headers, name)[0]
}

function headerLines(headers: RequestHeaders, name: string): readonly string[] {
  const value = headers[name] ?? []
  return (typeof value === 'string' ? [value] : value).map(decode)
}

/** Bytes that are UTF-8 are read as such, others as Latin-1, which HTTP says they are. */
function decode(text: string): string {
  if (PLAIN.test(text)) return text
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1'))
  } catch {
    return text
  }
}
