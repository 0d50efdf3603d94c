import { z } from 'zod'
import { printable } from '../../pipeline/program/terminal.ts'

const lineSchema = z.looseObject({
  level: z.string(),
  time: z.string(),
  msg: z.string().optional(),
  err: z.looseObject({ stack: z.string().optional(), message: z.string().optional() }).optional(),
})

/** A line of the log for people: `12:58:30 info  listening origin=http://127.0.0.1:3000`. */
export function plainLine(line: string): string {
  const { level, time, msg = '', err, ...facts } = lineSchema.parse(JSON.parse(line))
  const named = Object.entries(facts).map(
    ([name, value]) => ` ${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const fault = err === undefined ? '' : `\n  ${err.stack ?? err.message ?? ''}`
  const clock = time.slice('YYYY-MM-DDT'.length, -'.000Z'.length)
  return `${printable(`${clock} ${level.padEnd(5)} ${msg}${named.join('')}${fault}`)}\n`
}
