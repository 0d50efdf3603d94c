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
    .superRefine((list, context) => checkElements(element, list, context))
    .meta({ type: 'array', items: jsonSchema(element) })
}

/** Adds the first faults of the elements to `context`. */
function checkElements<Output>(
  element: z.ZodType<Output>,
  list: readonly unknown[],
  context: z.RefinementCtx,
): void {
  let faulty = 0
  for (let index = 0; index < list.length && faulty < FAULTY_AT_MOST; index += 1) {
    const { error } = element.safeParse(list[index])
    if (error === undefined) continue
    faulty += 1
    for (const { path, message } of error.issues) {
      context.addIssue({ code: 'custom', path: [index, ...path], message, continue: false })
    }
  }
}
