/**
 * `npm run bench`: every part, or the named ones: `npm run bench -- pipeline --large`. Each makes its own data
 * in a temporary folder and prints tables of medians and ratios; see README.md beside this file.
 */
import { UsageError, exitCodeOf, parseCommandLine, runAsProcess } from '../../pipeline/program/program.ts'
import { benchChat } from './chat/chat.ts'
import type { Print } from './measure.ts'
import { benchPipeline } from './pipeline/pipeline.ts'
import { benchScim } from './scim/scim.ts'
import { benchServing } from './serving/serving.ts'

type Part = (print: Print, options: { readonly large: boolean }) => Promise<void>

const PARTS: Readonly<Record<string, Part>> = {
  pipeline: benchPipeline,
  chat: (line) => benchChat(line),
  scim: benchScim,
  serving: benchServing,
}

const USAGE = `Usage: npm run bench -- [PART]... [--large]

Measures every part, or the named ones: ${Object.keys(PARTS).join(', ')}.
What each measures stands in test/bench/README.md.`

await runAsProcess(({ print, note }) =>
  exitCodeOf({ note }, async () => {
    const { values, positionals } = parseCommandLine({
      allowPositionals: true,
      options: {
        large: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (values.help) return print(USAGE)
    const unknown = positionals.filter((name) => !Object.hasOwn(PARTS, name))
    if (unknown.length > 0)
      throw new UsageError(`Unknown part ${unknown.join(', ')}: expected ${Object.keys(PARTS).join(', ')}`)
    for (const [name, part] of Object.entries(PARTS)) {
      if (positionals.length === 0 || positionals.includes(name)) await part(print, values)
    }
  }),
)
