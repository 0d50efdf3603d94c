/** What a directory says, read leniently where directories differ and strictly where it matters (RFC 7643, 7644). */
import { z } from 'zod'
import { shorten } from '../../untrusted/shorten.ts'
import { SyncFailure } from '../failures.ts'
import {
  identifierSchema,
  lowerCaseKeys,
  memberListSchema,
  nameSchema,
  type MemberList,
} from '../groups/members.ts'

/** A group as the directory has it. */
export interface RemoteGroup {
  /** The directory's `id`. */
  readonly scimId: string
  /** Its `externalId`, if it has one. */
  readonly externalId: string | null
  readonly displayName: string
  /** Null where the reply did not speak of members at all, which is not the same as an empty list. */
  readonly members: MemberList | null
}

/** One page of a list of groups. */
export interface Page {
  readonly groups: readonly RemoteGroup[]
  /** `totalResults`, where it is given and makes sense. */
  readonly total: number | undefined
  readonly nextCursor: string | undefined
}

const countSchema = z
  .union([z.number(), z.string().regex(/^\d+$/).transform(Number)])
  .pipe(z.int().min(0))
  .optional()
  .catch(undefined)

const pageSchema = z.preprocess(
  lowerCaseKeys,
  z.object({
    resources: z.array(z.unknown()).nullish(),
    totalresults: countSchema,
    // Whatever else it is must not pass for none: the first page would be taken for the whole list.
    nextcursor: z.union([z.string(), z.int().transform(String)]).nullish(),
  }),
)

const groupSchema = z.preprocess(
  lowerCaseKeys,
  z
    .object({
      // These two would climb out of the path they become part of.
      id: identifierSchema.refine((id) => id !== '.' && id !== '..', { message: 'must not be dots' }),
      externalid: identifierSchema.nullish().catch(null),
      displayname: nameSchema.nullish(),
      members: memberListSchema.nullish(),
    })
    .transform(({ id, externalid, displayname, members }): RemoteGroup => ({
      scimId: id,
      externalId: externalid ?? null,
      displayName: displayname?.trim() || id,
      members: members ?? null,
    })),
)

const idSchema = z.preprocess(lowerCaseKeys, z.object({ id: identifierSchema }))

const configSchema = z.preprocess(
  lowerCaseKeys,
  z.object({
    pagination: z.preprocess(lowerCaseKeys, z.object({ cursor: z.boolean().nullish() })).nullish(),
  }),
)

const errorSchema = z.preprocess(lowerCaseKeys, z.object({ scimtype: z.string().regex(/^\w{1,40}$/) }))

/** Reads one page of `GET /Groups`. */
export function readPage(body: unknown): Page {
  const { resources, totalresults, nextcursor } = parse(pageSchema, body, () => 'a list of groups')
  // An empty list may leave `Resources` out (RFC 7644, 3.4.2), but then it has to say how many there are.
  if (!resources && totalresults === undefined) {
    throw new SyncFailure(
      'directory_invalid_response',
      'a list of groups has neither Resources nor totalResults',
    )
  }
  return {
    groups: (resources ?? []).map(readGroup),
    total: totalresults,
    nextCursor: nextcursor || undefined,
  }
}

/** Reads one group. */
export function readGroup(body: unknown): RemoteGroup {
  return parse(groupSchema, body, () => {
    const scimId = idSchema.safeParse(body).data?.id
    return scimId === undefined ? 'a group' : groupCalled(scimId)
  })
}

/** A group in a message for the log. */
export function groupCalled(scimId: string): string {
  return `the group "${shorten(scimId)}"`
}

/** Whether a `ServiceProviderConfig` offers paging by cursor (RFC 9865). */
export function offersCursor(body: unknown): boolean {
  return configSchema.safeParse(body).data?.pagination?.cursor === true
}

/** The `scimType` of an error reply, `expiredCursor` for instance. */
export function scimTypeOf(body: unknown): string | undefined {
  return errorSchema.safeParse(body).data?.scimtype
}

function parse<Output>(schema: z.ZodType<Output>, body: unknown, what: () => string): Output {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  // The first issue alone: what the directory sent is hostile text of any length.
  const [issue] = parsed.error.issues
  const where = issue === undefined ? '' : ` at ${issue.path.map(String).join('.')}: ${issue.message}`
  throw new SyncFailure('directory_invalid_response', `${what()} is malformed${where.slice(0, 200)}`)
}
