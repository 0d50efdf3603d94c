/** The commands for decisions: rename, hide, show, tag, alias. */
import { SUBCATEGORIES } from '../contract/taxonomy.ts'
import { textOption, UsageError, type Work } from '../program/program.ts'
import { decide, type AppState } from './decide.ts'
import { command, readId, type RegistryDependencies } from './show-registry.ts'

const REASON = {
  reason: { ...textOption('TEXT', 'why; kept with the decision, and shown by history'), default: '' },
} as const
const IDS = [1, Infinity, 'one or more ids of apps; list shows the ids'] as const

/** Names and reasons are one line each. */
const ONE_LINE = /^[^\p{Cc}\p{Zl}\p{Zp}]*[^\p{Cc}\p{Z}][^\p{Cc}\p{Zl}\p{Zp}]*$/u

export const rename = command({
  usage: 'rename ID NAME --reason TEXT',
  summary: 'gives an app another name',
  options: REASON,
  takes: [2, 2, 'an id and a name, in quotes when it has spaces: rename ID NAME --reason TEXT'],
  prepare({ reason }, [id = '', name = '']) {
    if (!ONE_LINE.test(name)) throw new UsageError('The name must be one line with something to read in it')
    return decision('rename', [id], reason, (app) => ({ ...app, app_name: name.trim() }))
  },
})

export const hide = visibilityCommand('hide', 'hidden', 'takes apps out of what is published')
export const show = visibilityCommand('show', 'public', 'publishes apps, hidden or private ones')

function visibilityCommand(action: string, visibility: string, summary: string) {
  return command({
    usage: `${action} ID... --reason TEXT`,
    summary,
    options: REASON,
    takes: IDS,
    prepare: ({ reason }, ids) => decision(action, ids, reason, (app) => ({ ...app, visibility })),
  })
}

function subcategoryOption(help: string) {
  return { ...textOption('SUBCATEGORY', help), multiple: true as const, default: [] }
}

export const tag = command({
  usage: 'tag ID... [--add SUBCATEGORY]... [--remove SUBCATEGORY]... --reason TEXT',
  summary: 'adds subcategories to apps or removes them',
  options: {
    ...REASON,
    add: subcategoryOption('adds this one; may be repeated'),
    remove: subcategoryOption('removes this one; may be repeated'),
  },
  takes: IDS,
  prepare({ add, remove, reason }, ids) {
    if (add.length + remove.length === 0) {
      throw new UsageError('tag needs --add SUBCATEGORY or --remove SUBCATEGORY')
    }
    const unknown = add.filter((name) => !SUBCATEGORIES.some((known) => known === name))
    if (unknown.length > 0) {
      throw new UsageError(`Unknown subcategory ${unknown.join(', ')}: expected ${SUBCATEGORIES.join(', ')}`)
    }
    return decision('tag', ids, reason, (app) => ({
      ...app,
      subcategories: [...new Set([...app.subcategories, ...add])].filter((name) => !remove.includes(name)),
    }))
  },
})

export const alias = command({
  usage: 'alias ID... (--of ID | --none) --reason TEXT',
  summary: 'counts the usage of apps for another one, or for themselves again',
  options: {
    ...REASON,
    of: textOption('ID', 'the app that the usage counts for'),
    none: { type: 'boolean', default: false, help: 'the apps are aliases of no other app' },
  },
  takes: IDS,
  prepare({ of, none, reason }, ids) {
    if ((of === undefined) !== none) throw new UsageError('alias needs either --of ID or --none')
    const target = of === undefined ? null : readId(of)
    return decision('alias', ids, reason, (app) => ({ ...app, alias_of: target }))
  },
})

function decision(
  action: string,
  ids: readonly string[],
  reason: string,
  change: (app: AppState) => AppState,
): Work<RegistryDependencies> {
  if (!ONE_LINE.test(reason)) {
    throw new UsageError(`${action} needs a reason, which is kept with the decision: give --reason TEXT`)
  }
  const wanted = { action, ids: ids.map(readId), reason: reason.trim(), change }
  return (dependencies) => decide(dependencies, wanted)
}
