/** Settings that the pipeline and the API share, and how a program's help lists settings. */
import { validate } from 'node-cron'
import { z } from 'zod'
import { wrap } from './terminal.ts'

/** The port that the API listens on unless PORT names one. */
export const DEFAULT_PORT = 3000

/**
 * Where the service is reached on its own machine, unless PUBLIC_URL says how the public reaches it.
 * @param port the setting PORT as it is set; 0, which stands for any free port, tells as little as none.
 */
export function localUrl(port = ''): string {
  return `http://127.0.0.1:${/^[1-9]\d{0,4}$/.test(port) ? port : DEFAULT_PORT}`
}

/** Hour at which the nightly run starts unless NIGHTLY_SCHEDULE says otherwise: 02:00 UTC (cron form). */
const DEFAULT_SCHEDULE = '0 2 * * *'

/** NIGHTLY_SCHEDULE, which the pipeline keeps and the API tells. */
export const scheduleSchema = z
  .string()
  .refine((expression) => validate(expression), `Expected a cron expression such as "${DEFAULT_SCHEDULE}"`)
  .default(DEFAULT_SCHEDULE)

/** The address of a program that takes notices. */
export const webAddressSchema = z.url({
  protocol: /^https?$/,
  error: 'Expected an address that begins with https:// or http://',
})

const ORIGIN_EXPECTED = 'Expected an origin such as https://example.com, without a path'

/** PUBLIC_URL, without a slash at its end: every path of the service begins right behind it. */
export const publicUrlSchema = z
  .url({ protocol: /^https?$/, error: ORIGIN_EXPECTED })
  .transform((url) => new URL(url))
  .refine(({ href, origin }) => href === `${origin}/`, ORIGIN_EXPECTED)
  .transform(({ origin }) => origin)

/** What a table of settings says in a program's help: a line for each, with its default where it has one. */
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
