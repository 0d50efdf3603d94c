/** The members of a group, as the directory supplies them, and the digest by which two lists are compared. */
import { hash } from 'node:crypto'
import { z } from 'zod'

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
  .refine(
    (text) => text.length > 0 && text.length <= MAX_TEXT && text.isWellFormed() && !/\p{Cc}/u.test(text),
    {
      message: 'must be a text of 1 to 1024 characters, none of them a control character',
    },
  )

const memberSchema = z
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
  })

/** The members of one group in a reply of the directory. */
export const memberListSchema = z.array(memberSchema).transform(toMemberList)

/** Sorts the members, drops repeated ones and works out the digest. */
export function toMemberList(members: readonly Member[]): MemberList {
  const byId = new Map(members.map((member) => [member.id, member]))
  // By code units: the order has to be the same on every machine.
  const sorted = [...byId.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))
  const text = JSON.stringify(sorted.map(({ id, type, displayName }) => [id, type, displayName]))
  return { count: sorted.length, digest: hash('sha256', text, 'base64url'), read: () => readText(text) }
}

const textSchema = z.array(z.tuple([z.string(), z.string().nullable(), z.string().nullable()]))

function readText(text: string): readonly Member[] {
  return textSchema.parse(JSON.parse(text)).map(([id, type, displayName]) => ({ id, type, displayName }))
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
