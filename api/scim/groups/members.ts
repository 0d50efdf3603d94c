/** The members of a group, as the directory supplies them, and the digest by which two lists are compared. */
import { hash } from 'node:crypto'
import { z } from 'zod'
import { isObject } from '../../untrusted/json.ts'
import { readElements } from '../../untrusted/long-lists.ts'

/** One member: a user or, unexpanded, another group. */
export interface Member {
  /** The directory's id of the user or group. */
  readonly id: string
  /** The directory's word for what it is, usually `User` or `Group`; null where it gives none. */
  readonly type: string | null
  readonly displayName: string | null
}

/** The whole list of a group's members. */
export interface MemberList {
  readonly count: number
  /** Equal for equal lists. */
  readonly digest: string
  /** The members, sorted by id, each once. Kept as one text, since most lists only have their digest looked at. */
  readonly read: () => readonly Member[]
}

const MAX_TEXT = 1024
// PostgreSQL takes no more than 2704 bytes, all columns together, into an index.
const MAX_ID_BYTES = 1024

/** Text of the directory in a form that every store keeps unchanged: well-formed, without control characters. */
export const nameSchema = z.string().transform((text) =>
  text
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, ' ')
    .slice(0, MAX_TEXT)
    .toWellFormed(),
)

/** An identifier: taken as it is, or not at all. */
export const identifierSchema = z
  .union([z.string(), z.int().transform(String)])
  .refine((text) => fitsAsId(text) && text.isWellFormed() && !/\p{Cc}/u.test(text), {
    message: 'must be a text of 1 to 1024 bytes, none of its characters a control character',
  })

/**
 * What the directory sent, the names of its attributes in lower case: they may be in any (RFC 7643, 2.1), and directories
 * make use of it. Entra says `resources`.
 */
export function lowerCaseKeys(value: unknown): unknown {
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, content]) => [key.toLowerCase(), content]))
}

const memberSchema = z.preprocess(
  lowerCaseKeys,
  z
    .object({
      value: identifierSchema.nullish(),
      $ref: z.string().nullish(),
      type: nameSchema.nullish(),
      display: nameSchema.nullish(),
    })
    .transform(({ value, $ref, type, display }, context): Member => {
      // Some directories give the address alone, which ends in the id.
      const id = value ?? idOfReference($ref ?? '')
      if (id === undefined) context.addIssue({ code: 'custom', message: 'has neither value nor $ref' })
      return { id: id ?? '', type: type ?? null, displayName: display ?? null }
    }),
)

/** The members of one group in a reply of the directory. */
export const memberListSchema = z.unknown().transform((value, context): MemberList => {
  const plain = readPlainList(value)
  if (plain !== undefined) return plain
  if (Array.isArray(value)) return toMemberList(readElements(memberSchema, value, context))
  context.addIssue({ code: 'invalid_type', expected: 'array', input: value })
  return z.NEVER
})

/** Sorts the members, drops repeated ones and works out the digest. */
export function toMemberList(members: readonly Member[]): MemberList {
  const unique = sortUnique(members)
  return listOf(unique.length, textOf(unique))
}

interface PlainMember {
  readonly value: string
  readonly type?: string | null
  readonly display?: string | null
}

// What JSON writes with a backslash (quotes, backslashes, control characters, halves of surrogate pairs) and the
// control characters that it writes as they are.
const NEEDS_CARE = /[\\\u007f-\u009f]/

const PLAIN_NAMES = new Set(['value', '$ref', 'type', 'display'])

// Nearly all members of nearly all directories need nothing mended, and for hundreds of thousands of them it is the
// schema that takes the time. Undefined where there is anything for the schema to judge; otherwise the same list.
function readPlainList(value: unknown): MemberList | undefined {
  if (!Array.isArray(value) || !value.every(isPlain)) return undefined
  const unique = sortUnique(value.map(memberOf))
  const text = textOf(unique)
  return NEEDS_CARE.test(text) ? undefined : listOf(unique.length, text)
}

function isPlain(member: unknown): member is PlainMember {
  if (typeof member !== 'object' || member === null || !('value' in member)) return false
  const { value } = member
  return (
    hasPlainNames(member) &&
    typeof value === 'string' &&
    fitsAsId(value) &&
    (!('type' in member) || isPlainText(member.type)) &&
    (!('display' in member) || isPlainText(member.display)) &&
    (!('$ref' in member) || typeof member.$ref === 'string')
  )
}

// Without an array of the names: there are hundreds of thousands of members.
function hasPlainNames(member: object): boolean {
  for (const name in member) if (!PLAIN_NAMES.has(name) && name !== name.toLowerCase()) return false
  return true
}

function fitsAsId(text: string): boolean {
  return text.length > 0 && text.length <= MAX_ID_BYTES && Buffer.byteLength(text) <= MAX_ID_BYTES
}

function isPlainText(text: unknown): boolean {
  return text === null || (typeof text === 'string' && text.length <= MAX_TEXT)
}

function memberOf({ value, type, display }: PlainMember): Member {
  return { id: value, type: type ?? null, displayName: display ?? null }
}

// By code units: the order has to be the same on every machine. Of repeated members the last one counts.
function sortUnique(members: readonly Member[]): readonly Member[] {
  const sorted = members.toSorted((a, b) => (a.id < b.id ? -1 : Number(a.id > b.id)))
  return sorted.filter(({ id }, index) => id !== sorted[index + 1]?.id)
}

// One flat list: id, type and name of the first member, then those of the second …
function textOf(members: readonly Member[]): string {
  return JSON.stringify(members.flatMap(({ id, type, displayName }) => [id, type, displayName]))
}

function listOf(count: number, text: string): MemberList {
  return { count, digest: hash('sha256', text, 'base64url'), read: () => readText(text) }
}

const textSchema = z.array(z.string().nullable())

function readText(text: string): readonly Member[] {
  const texts = textSchema.parse(JSON.parse(text))
  return Array.from({ length: texts.length / 3 }, (_, index) => ({
    id: texts[3 * index] ?? '',
    type: texts[3 * index + 1] ?? null,
    displayName: texts[3 * index + 2] ?? null,
  }))
}

function idOfReference(reference: string): string | undefined {
  const last = reference.split('/').at(-1)
  if (last === undefined || last === '') return undefined
  try {
    return identifierSchema.safeParse(decodeURIComponent(last)).data
  } catch {
    return undefined
  }
}
