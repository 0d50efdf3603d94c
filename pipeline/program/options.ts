/** What an operator may give by name: the options of commands and the settings, each with its check and its meaning. */
import { z } from 'zod'
import { explained } from './terminal.ts'

/** Options or settings by name. */
export type Table = z.core.$ZodLooseShape

/** What is given of a table, checked. */
export type Values<Given extends Table> = z.output<z.ZodObject<Given>>

/** An option that must be given; `value` names its text in the help. */
export function required<Schema extends z.ZodType>(value: string, help: string, schema: Schema): Schema {
  return schema.meta({ value, description: help })
}

/** An option that may be given. */
export function option<Schema extends z.ZodType>(value: string, help: string, schema: Schema) {
  return required(value, help, schema.optional())
}

/** An option that may be repeated, or list several texts, separated by commas. */
export function list<Schema extends z.ZodType<unknown, string>>(value: string, help: string, item: Schema) {
  const texts = z.array(z.string()).default([])
  const items = texts.transform((given) => given.flatMap((text) => text.split(/\s*,\s*/)))
  return required(`${value}...`, `${help}; may be repeated`, items.pipe(z.array(item)))
}

/** An option without a value. */
export function flag(help: string) {
  return z.boolean().default(false).describe(help)
}

/** An option of several commands. */
export const JSON_OPTION = { json: flag('prints the result as JSON') }

/** One of several words. */
export function oneOf<const Word extends string>(words: readonly Word[]) {
  const error = ({ input }: { readonly input: unknown }) =>
    `Expected ${words.join(', ')}${input === undefined ? '' : `, not ${JSON.stringify(input)}`}`
  return z.enum(words, { error })
}

/** A whole number. */
export function wholeNumber(least: number, most: number) {
  const message = `Expected a whole number from ${least} to ${most}`
  return z
    .string()
    .regex(/^\d+$/, { error: message, abort: true })
    .transform(Number)
    .refine((number) => number >= least && number <= most, { error: message, abort: true })
}

/** The faults of what is given, a sentence each by name. */
export function faultsOf(
  table: Table,
  given: Readonly<Record<string, unknown>>,
  prefix = '',
): Map<string, string> {
  const issues = z.object(table).safeParse(given).error?.issues ?? []
  const byName = Map.groupBy(issues, ({ path: [name] }) => String(name))
  const sentence = (name: string, found: readonly { readonly message: string }[]) =>
    `${prefix}${name}: ${found.map(({ message }) => message).join(', ')}`
  return new Map(byName.entries().map(([name, found]) => [name, sentence(name, found)]))
}

/** The name of an option's value in the help; undefined for a flag. */
export function valueOf(schema: Table[string]): string | undefined {
  const value = z.globalRegistry.get(schema)?.['value']
  return typeof value === 'string' ? value : undefined
}

/** What may be given, with its meaning and its default, as a part of a help. */
export function explainTable(table: Table, prefix = ''): string {
  const entries = Object.entries(table).map(([name, schema]) => {
    const { success, data } = z.safeParse(schema, undefined)
    const fallback = typeof data === 'string' || typeof data === 'number' ? ` Default: ${data}.` : ''
    const { description = '' } = z.globalRegistry.get(schema) ?? {}
    const term = `${prefix}${name} ${valueOf(schema) ?? ''}`.trimEnd()
    return explained(term, `${description}${success ? fallback : ' (required)'}`)
  })
  return entries.join('\n')
}
