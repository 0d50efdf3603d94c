/** The commands for decisions: rename, hide, show, tag, alias. */
import { UsageError, parseCommandLine } from '../program/program.ts'
import { SUBCATEGORIES } from '../contract/taxonomy.ts'
import { decide } from './decide.ts'
import type { AppState } from './decide.ts'
import type { RegistryCommand, RegistryDependencies } from './dependencies.ts'

const REASON = { reason: { type: 'string' } } as const

/** Names and reasons are one line each. */
const ONE_LINE = /^[^\p{Cc}\p{Zl}\p{Zp}]*[^\p{Cc}\p{Z}][^\p{Cc}\p{Zl}\p{Zp}]*$/u

export const rename: RegistryCommand = {
  usage: 'rename ID NAME --reason TEXT',
  summary: 'gives an app another name',
  prepare(args) {
    const { values, positionals } = parseCommandLine({ args, allowPositionals: true, options: REASON })
    const [id, name, ...rest] = positionals
    if (id === undefined || name === undefined || rest.length > 0) {
      throw new UsageError(
        `rename takes an id and a name, in quotes when it has spaces: usage: ${rename.usage}`,
      )
    }
    if (!ONE_LINE.test(name)) throw new UsageError('The name must be one line with something to read in it')
    return decision('rename', [id], values.reason, (app) => ({ ...app, app_name: name.trim() }))
  },
}

export const hide: RegistryCommand = visibilityCommand(
  'hide',
  'hidden',
  'takes apps out of what is published',
)
export const show: RegistryCommand = visibilityCommand(
  'show',
  'public',
  'publishes apps, hidden or private ones',
)

function visibilityCommand(action: 'hide' | 'show', visibility: string, summary: string): RegistryCommand {
  return {
    usage: `${action} ID... --reason TEXT`,
    summary,
    prepare(args) {
      const { values, positionals } = parseCommandLine({ args, allowPositionals: true, options: REASON })
      return decision(action, positionals, values.reason, (app) => ({ ...app, visibility }))
    },
  }
}

export const tag: RegistryCommand = {
  usage: 'tag ID... [--add SUBCATEGORY]... [--remove SUBCATEGORY]... --reason TEXT',
  summary: 'adds subcategories to apps or removes them',
  prepare(args) {
    const { values, positionals } = parseCommandLine({
      args,
      allowPositionals: true,
      options: {
        ...REASON,
        add: { type: 'string', multiple: true, default: [] },
        remove: { type: 'string', multiple: true, default: [] },
      },
    })
    const { add, remove } = values
    if (add.length + remove.length === 0)
      throw new UsageError(`Nothing to add or remove: usage: ${tag.usage}`)
    const unknown = add.filter((name) => !SUBCATEGORIES.some((known) => known === name))
    if (unknown.length > 0) {
      throw new UsageError(`Unknown subcategory ${unknown.join(', ')}: expected ${SUBCATEGORIES.join(', ')}`)
    }
    return decision('tag', positionals, values.reason, (app) => ({
      ...app,
      subcategories: [...new Set([...app.subcategories, ...add])].filter((name) => !remove.includes(name)),
    }))
  },
}

export const alias: RegistryCommand = {
  usage: 'alias ID... (--of ID | --none) --reason TEXT',
  summary: 'counts the usage of apps for another one, or for themselves again',
  prepare(args) {
    const { values, positionals } = parseCommandLine({
      args,
      allowPositionals: true,
      options: { ...REASON, of: { type: 'string' }, none: { type: 'boolean', default: false } },
    })
    const { of, none } = values
    if ((of === undefined) !== none) throw new UsageError(`Give either --of or --none: say ${alias.usage}`)
    const target = of === undefined ? null : readId(of)
    return decision('alias', positionals, values.reason, (app) => ({ ...app, alias_of: target }))
  },
}

const APP_ID = /^-?\d{1,19}$/

/**
 * Normalises an id: `01` is `1`.
 * @throws UsageError if the text is not an id.
 */
export function readId(text: string): string {
  if (!APP_ID.test(text)) throw new UsageError(`"${text}" is not the id of an app: list shows the ids`)
  return BigInt(text).toString()
}

/** Parses the arguments that all decisions share. */
function decision(
  action: string,
  ids: readonly string[],
  reason: string | undefined,
  change: (app: AppState) => AppState,
): (dependencies: RegistryDependencies) => Promise<void> {
  if (ids.length === 0) throw new UsageError(`${action} needs the id of an app: list shows the ids`)
  if (reason === undefined || !ONE_LINE.test(reason)) {
    throw new UsageError(`${action} needs a reason, which is kept with the decision: give --reason TEXT`)
  }
  const wanted = { action, ids: ids.map(readId), reason: reason.trim(), change }
  return (dependencies) => decide(dependencies, wanted)
}
