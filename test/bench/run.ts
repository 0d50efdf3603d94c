/**
 * `npm run bench`: every part, or those that are named: `npm run bench -- pipeline --large`. Each makes its own data
 * in a temporary folder and prints tables of medians and ratios; see README.md beside this file.
 */
import { parseArgs } from 'node:util'
import { benchChat } from './chat.ts'
import type { Print } from './measure.ts'
import { benchPipeline } from './pipeline.ts'
import { benchScim } from './scim.ts'
import { benchServing } from './serving.ts'

type Part = (print: Print, options: { readonly large: boolean }) => Promise<void>

const PARTS: Readonly<Record<string, Part>> = {
  pipeline: benchPipeline,
  chat: (print) => benchChat(print),
  scim: benchScim,
  serving: benchServing,
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { large: { type: 'boolean', default: false } },
})

const unknown = positionals.filter((name) => !(name in PARTS))
if (unknown.length > 0) {
  process.stderr.write(`Unknown part ${unknown.join(', ')}: expected ${Object.keys(PARTS).join(', ')}\n`)
  process.exitCode = 2
} else {
  for (const [name, part] of Object.entries(PARTS)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue
    await part((line) => process.stdout.write(`${line}\n`), values)
  }
}
