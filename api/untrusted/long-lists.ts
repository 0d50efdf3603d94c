/** Untrusted lists, possibly with millions of elements: validation stops after a few invalid ones. */
import { z } from 'zod'
import { jsonSchema } from '../openapi/schema.ts'

/** Invalid elements after which validation stops: more than a message lists. */
const FAULTY_AT_MOST = 6

/** A list of `element`s, validated and passed on unchanged. */
export function longList<Output>(element: z.ZodType<Output>) {
  // zod's array would visit every element.
  return z
    .custom<readonly Output[]>(Array.isArray, 'Expected a list')
    .superRefine((list, context) => {
      let faulty = 0
      for (let index = 0; index < list.length && faulty < FAULTY_AT_MOST; index += 1) {
        const issues = element.safeParse(list[index]).error?.issues ?? []
        if (issues.length > 0) faulty += 1
        for (const { path, message } of issues)
          context.addIssue({ code: 'custom', path: [index, ...path], message, continue: false })
      }
    })
    .meta({ type: 'array', items: jsonSchema(element) })
}
