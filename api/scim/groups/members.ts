/** The members of a group from the directory, and a digest to compare lists. */
import { hash } from 'node:crypto'
import { z } from 'zod'
import { isObject } from '../../untrusted/json.ts'
import { asList, attribute, readEmail, readFlag, readIdentifier, readText } from '../directory/attributes.ts'

/** One member: a user or a nested group. */
export interface Member {
  /** The directory's id of the user or group. */
  readonly id: string
  /** The directory's type, usually `User` or `Group`; null without one. */
  readonly type: string | null
  readonly displayName: string | null
  /** Whether the user is active in the directory, and the e-mail address; null without a value. */
  readonly active: boolean | null
  readonly email: string | null
}

/** The whole list of a group's members. */
export interface MemberList {
  readonly count: number
  /** Equal for equal lists. */
  readonly digest: string
  /** Memory of the list. */
  readonly bytes: number
  /** The members, sorted by id, each once. Stored as one text, since most lists need only the digest. */
  readonly read: () => readonly Member[]
}

/** A directory's members of a group. */
export interface ReceivedMembers {
  /** Null without usable members, which differs from an empty list. */
  readonly list: MemberList | null
  /** Number of entries left out without a usable id. */
  readonly withoutId: number
  /** Number of attributes left out with a wrong type. */
  readonly oddAttributes: number
}

/** Reads the members of one group in a reply. */
export function readReceivedMembers(value: unknown): ReceivedMembers {
  if (value === undefined || value === null) return { list: null, withoutId: 0, oddAttributes: 0 }
  if (typeof value !== 'object') return { list: null, withoutId: 0, oddAttributes: 1 }
  let oddAttributes = 0
  const members: Member[] = []
  const entries = asList(value).filter((entry) => !isRemoved(entry))
  for (const entry of entries) {
    const member = readMember(entry, () => (oddAttributes += 1))
    if (member !== undefined) members.push(member)
  }
  const withoutId = entries.length - members.length
  const isUnusable = members.length === 0 && withoutId > 0
  return { list: isUnusable ? null : toMemberList(members), withoutId, oddAttributes }
}

/** SCIM 1.1 marks removed members instead of omitting them. */
function isRemoved(entry: unknown): boolean {
  return isObject(entry) && readText(attribute(entry, 'operation'))?.toLowerCase() === 'delete'
}

function readMember(entry: unknown, onOddAttribute: () => void): Member | undefined {
  // Some directories send the ids alone, others the address alone, which ends in the id.
  const attributes = isObject(entry) ? entry : { value: entry }
  const id = readIdentifier(attribute(attributes, 'value')) ?? idOfReference(attribute(attributes, '$ref'))
  if (id === undefined) return undefined
  const text = (name: string) => {
    const value = attribute(attributes, name)
    const read = readText(value)
    if (value !== undefined && read === undefined) onOddAttribute()
    return read ?? null
  }
  const active = readFlag(attribute(attributes, 'active')) ?? null
  return {
    id,
    type: text('type'),
    displayName: text('display'),
    active,
    email: readEmail(attributes) ?? null,
  }
}

// Without the lookbehind, a run of slashes takes quadratic time.
const SLASHES_AT_END = /(?<!\/)\/+$/

function idOfReference(reference: unknown): string | undefined {
  if (typeof reference !== 'string') return undefined
  const last = reference.replace(SLASHES_AT_END, '').split('/').at(-1)
  if (last === undefined) return undefined
  try {
    return readIdentifier(decodeURIComponent(last))
  } catch {
    return undefined
  }
}

/** Sorts the members, drops repeated ones and computes the digest. */
export function toMemberList(members: readonly Member[]): MemberList {
  const unique = sortUnique(members)
  // Most directories send only these three.
  const isShort = unique.every(({ active, email }) => active === null && email === null)
  const text = JSON.stringify(unique.flatMap(isShort ? shortRow : longRow))
  return {
    count: unique.length,
    digest: hash('sha256', text, 'base64url'),
    // V8 stores text with other characters in two bytes each.
    bytes: LATIN1.test(text) ? text.length : 2 * text.length,
    read: () => readRows(text, isShort ? 3 : 5),
  }
}

const LATIN1 = /^[\0-\u00ff]*$/

function shortRow({ id, type, displayName }: Member) {
  return [id, type, displayName]
}

function longRow(member: Member) {
  return [...shortRow(member), member.active, member.email]
}

// By code units, which give the same order on every machine. Of repeated members the last one counts.
function sortUnique(members: readonly Member[]): readonly Member[] {
  const sorted = members.toSorted((a, b) => (a.id < b.id ? -1 : Number(a.id > b.id)))
  return sorted.filter(({ id }, index) => id !== sorted[index + 1]?.id)
}

const textSchema = z.string().nullable().default(null)
const rowsSchema = z.array(z.union([z.string(), z.boolean(), z.null()]))
const rowSchema = z.tuple([
  z.string(),
  textSchema,
  textSchema,
  z.boolean().nullable().default(null),
  textSchema,
])

function readRows(text: string, width: 3 | 5): readonly Member[] {
  const values = rowsSchema.parse(JSON.parse(text))
  return Array.from({ length: values.length / width }, (_, index) => {
    const row = rowSchema.parse(values.slice(width * index, width * (index + 1)))
    const [id, type, displayName, active, email] = row
    return { id, type, displayName, active, email }
  })
}
