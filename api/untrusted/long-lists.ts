/** Lists of strangers, which may have millions of elements: looked at until a few of them are faulty. */
import { z } from 'zod'
import { jsonSchema } from '../openapi/schema.ts'

/** Faulty elements after which nothing more is looked at: more than any message tells. */
const FAULTY_AT_MOST = 6

/** A list of `element`s, which are checked and passed on as they were sent. */
export function longList<Output>(element: z.ZodType<Output>) {
  // The array of zod would visit every element, whatever comes of it.
  return z
    .custom<readonly Output[]>(Array.isArray, 'Expected a list')
    .superRefine((list, context) => void readElements(element, list, context))
    .meta({ type: 'array', items: jsonSchema(element, 'input') })
}

/** The elements as their schema reads them; the faults of the first faulty ones are told to `context`. */
function readElements<Output>(
  element: z.ZodType<Output>,
  list: readonly unknown[],
  context: z.RefinementCtx,
): readonly Output[] {
  const elements: Output[] = []
  let faulty = 0
  for (let index = 0; index < list.length && faulty < FAULTY_AT_MOST; index += 1) {
    const { data, error } = element.safeParse(list[index])
    if (error === undefined) elements.push(data)
    else faulty += 1
    for (const { path, message } of error?.issues ?? []) {
      context.addIssue({ code: 'custom', path: [index, ...path], message, continue: false })
    }
  }
  return elements
}
