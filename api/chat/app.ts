/**
 * Reads from the headers of a request which app sent it (CONTRACT 6). Nothing is verified: anybody may claim anything.
 * The id follows from the address or title alone; only the nightly run registers apps.
 */
import { isUtf8 } from 'node:buffer'
import { appNamed, cleanName, identityOfAddress, NAMED } from '../../pipeline/contract/app-identity.ts'
import { UNATTRIBUTED_APP_ID } from '../../pipeline/contract/dataset.ts'

/** An app as a request names it. */
export interface NamedApp {
  /** UNATTRIBUTED_APP_ID if nothing names it. */
  readonly id: number
  /** Its address, or without a public address its title; null if nothing names it. */
  readonly app: string | null
  readonly title: string | null
  /** As sent: a list with commas. */
  readonly categories: string | null
  readonly foundBy: 'address' | 'title' | 'nothing'
}

/** Header lines by lower-case name. */
type RequestHeaders = Readonly<Record<string, readonly string[] | undefined>>

const ADDRESS_HEADER = /^http-referer$/
const IS_ADDRESS = /^\s*https?:\/\//i
// With or without a service prefix in the middle.
const TITLE_HEADER = /^x-(?:.+-)?title$/i
const CATEGORIES_HEADER = /^x-(?:.+-)?categories$/i

const UNNAMED: NamedApp = {
  id: UNATTRIBUTED_APP_ID,
  app: null,
  title: null,
  categories: null,
  foundBy: 'nothing',
}

/** The app that the headers name. An address that many apps share, such as localhost, counts by the title. */
export function namedApp(headers: RequestHeaders): NamedApp {
  const [address = ''] = linesOf(headers, ADDRESS_HEADER)
  const title = linesOf(headers, TITLE_HEADER).find((one) => cleanName(one) !== '')
  const identity = identityOfAddress(address, title && cleanName(title))
  if (identity === undefined || !IS_ADDRESS.test(address)) return UNNAMED
  const isShared = identity.startsWith(NAMED)
  const app = isShared ? (title ?? '') : address
  return {
    // The nightly run computes the same id from the same text.
    id: appNamed(app)?.app_id ?? UNATTRIBUTED_APP_ID,
    app,
    title: title ?? null,
    categories: linesOf(headers, CATEGORIES_HEADER).join(',') || null,
    foundBy: isShared ? 'title' : 'address',
  }
}

/** The lines of all headers with such a name, the shortest name first. */
function linesOf(headers: RequestHeaders, name: RegExp): readonly string[] {
  return Object.keys(headers)
    .filter((key) => name.test(key))
    .toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1))
    .flatMap((key) => headers[key] ?? [])
    .map(decode)
}

/** Reads bytes as UTF-8 if they are valid, otherwise as Latin-1, the encoding of HTTP. */
function decode(text: string): string {
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : text
}
