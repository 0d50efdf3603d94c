/** Reads from the headers of a request which app sent it (CONTRACT 6). */
import { cleanName, identityOfAddress } from '../../../pipeline/contract/app-identity.ts'
import { SUBCATEGORIES, type Subcategory } from '../../../pipeline/contract/taxonomy.ts'

/** An app as a request names it. Nothing is verified: anybody may claim anything. */
export interface AppClaim {
  /** Host and path of the app's address. Without a public address: `local:` and the title. */
  readonly identity: string
  readonly title: string | undefined
  readonly subcategories: readonly Subcategory[]
}

/** Header lines by lower-case name. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

const MAX_CATEGORIES = 2

const ADDRESS_HEADER = 'http-referer'
// With or without a service prefix in the middle.
const TITLE_HEADER = /^x-(?:.+-)?title$/i
const CATEGORIES_HEADER = /^x-(?:.+-)?categories$/i

// These characters have the same bytes in UTF-8 and Latin-1.
const PLAIN = /^[\x20-\x7E]*$/

/** The headers that readAppClaim reads. */
export function appHeaders(headers: RequestHeaders): RequestHeaders {
  const relevant: Record<string, RequestHeaders[string]> = {}
  for (const name in headers) if (isAppHeader(name)) relevant[name] = headers[name]
  return relevant
}

function isAppHeader(name: string): boolean {
  return name === ADDRESS_HEADER || TITLE_HEADER.test(name) || CATEGORIES_HEADER.test(name)
}

/** The app that the headers name; undefined when they identify none. */
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

/** The text of a header. Of a repeated header the first counts, since several addresses are no address. */
function headerText(headers: RequestHeaders, name: string): string | undefined {
  return headerLines(headers, name)[0]
}

function headerLines(headers: RequestHeaders, name: string): readonly string[] {
  const value = headers[name] ?? []
  return (typeof value === 'string' ? [value] : value).map(decode)
}

/** Reads bytes as UTF-8 if they are valid, otherwise as Latin-1, the encoding of HTTP. */
function decode(text: string): string {
  if (PLAIN.test(text)) return text
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1'))
  } catch {
    return text
  }
}
