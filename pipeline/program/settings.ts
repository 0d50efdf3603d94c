/** Settings that the pipeline and the API share, and how a program's help lists settings. */
import { validate } from 'node-cron'
import { z } from 'zod'
import { UsageError } from './program.ts'
import { wrap } from './terminal.ts'

/** The port that the API listens on unless PORT names one. */
export const DEFAULT_PORT = 3000

/**
 * Default of PUBLIC_URL: the service on its own machine.
 * @param port the setting PORT; 0 means any free port and counts as not set.
 */
export function localUrl(port = ''): string {
  return `http://127.0.0.1:${/^[1-9]\d{0,4}$/.test(port) ? port : DEFAULT_PORT}`
}

/** Start of the nightly run if NIGHTLY_SCHEDULE is not set: 02:00 UTC (cron form). */
const DEFAULT_SCHEDULE = '0 2 * * *'

/** NIGHTLY_SCHEDULE: the schedule follows it, and the API reports the next run from it. */
export const scheduleSchema = z
  .string()
  .refine((expression) => validate(expression), `Expected a cron expression such as "${DEFAULT_SCHEDULE}"`)
  .default(DEFAULT_SCHEDULE)

/** The URL of a receiver of notices. */
export const webAddressSchema = z.url({
  protocol: /^https?$/,
  error: 'Expected an address that begins with https:// or http://',
})

const ORIGIN_EXPECTED = 'Expected an origin such as https://example.com, without a path'

/** PUBLIC_URL, without a final slash, so that paths can be appended. */
export const publicUrlSchema = z
  .url({ protocol: /^https?$/, error: ORIGIN_EXPECTED })
  .transform((url) => new URL(url))
  .refine(({ href, origin }) => href === `${origin}/`, ORIGIN_EXPECTED)
  .transform(({ origin }) => origin)

/** A table of settings as text for a program's help: a line per setting, with its default. */
export function settingsHelp(
  settings: Readonly<Record<string, z.ZodType<string | number | undefined>>>,
): string {
  const lines = Object.entries(settings).map(([name, setting]) => {
    const { data: fallback } = setting.safeParse(undefined)
    const end = fallback === undefined ? '' : ` Default: ${fallback}.`
    const text = wrap(`${setting.description ?? ''}${end}`, ' '.repeat(25))
    return `  ${name.padEnd(23)}${text.trimStart()}`
  })
  return `Settings (environment):\n${lines.join('\n')}`
}

type Environment = Readonly<Record<string, string | undefined>>

/** The faults of the settings by name, a sentence each, which begins with it. An empty variable counts as not set. */
export function settingFaults(table: z.core.$ZodLooseShape, environment: Environment): Map<string, string> {
  const faults = new Map<string, string>()
  for (const [name, schema] of Object.entries(table)) {
    const { error } = z.safeParse(schema, environment[name] || undefined)
    if (error !== undefined)
      faults.set(name, `${name}: ${error.issues.map(({ message }) => message).join(', ')}`)
  }
  return faults
}

/**
 * The checked settings of a table.
 * @throws UsageError that lists every fault.
 */
export function readSettings<Table extends z.core.$ZodShape>(table: Table, environment: Environment) {
  const faults = settingFaults(table, environment)
  if (faults.size > 0)
    throw new UsageError(['Invalid settings in the environment:', ...faults.values()].join('\n'))
  const given = Object.entries(environment).filter(([, value]) => value !== '')
  return z.object(table).parse(Object.fromEntries(given))
}

/** A setting for a whole number. */
export function wholeNumber(least: number, most: number) {
  const message = `Expected a whole number from ${least} to ${most}`
  return z
    .string()
    .regex(/^\d+$/, { error: message, abort: true })
    .transform(Number)
    .refine((number) => number >= least && number <= most, message)
}
