/**
 * `npm run bench`: every part, or the named ones: `npm run bench -- pipeline --large`. Each makes its own data
 * in a temporary folder and prints tables of medians and ratios; see README.md beside this file.
 */
import { flag } from '../../pipeline/program/options.ts'
import { UsageError, programOf, runAsProcess } from '../../pipeline/program/program.ts'
import { benchChat } from './chat/chat.ts'
import type { Options, Print } from './measure.ts'
import { benchPipeline } from './pipeline/pipeline.ts'
import { benchScim } from './scim/scim.ts'
import { benchServing } from './serving/serving.ts'

type Part = (print: Print, options: Options<never>) => Promise<void>

const PARTS: Readonly<Record<string, Part>> = {
  pipeline: benchPipeline,
  chat: benchChat,
  scim: benchScim,
  serving: benchServing,
}

const NAMES = Object.keys(PARTS)

const bench = programOf('npm run bench', {
  summary: `measures every part, or the named ones: ${NAMES.join(', ')}. What each measures stands in test/bench/README.md`,
  takes: '[PART]...',
  options: { large: flag('measures the large cases too') },
  async work({ print }, options, parts) {
    const unknown = parts.filter((name) => !NAMES.includes(name))
    if (unknown.length > 0)
      throw new UsageError(`Unknown part ${unknown.join(', ')}: expected ${NAMES.join(', ')}`)
    for (const [name, part] of Object.entries(PARTS)) {
      if (parts.length === 0 || parts.includes(name)) await part(print, options)
    }
  },
})

await runAsProcess(bench)
