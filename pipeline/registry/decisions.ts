/** The commands for decisions: rename, hide, show, tag, alias. */
import { z } from 'zod'
import { SUBCATEGORIES } from '../contract/taxonomy.ts'
import { flag, list, oneOf, option, required } from '../program/options.ts'
import { UsageError } from '../program/program.ts'
import { decide } from './decide.ts'
import { command, readId } from './show-registry.ts'

/** Names and reasons are one line each. */
const ONE_LINE = /^[^\p{Cc}\p{Zl}\p{Zp}]*[^\p{Cc}\p{Z}][^\p{Cc}\p{Zl}\p{Zp}]*$/u

const NO_REASON = 'Expected one line, which is kept with the decision'
const REASON = {
  reason: required(
    'TEXT',
    'why; kept with the decision, and shown by history',
    z
      .string(NO_REASON)
      .regex(ONE_LINE, NO_REASON)
      .transform((text) => text.trim()),
  ),
}

export const rename = command({
  summary: 'gives an app another name, in quotes if it has spaces',
  takes: 'ID NAME',
  options: REASON,
  async work(dependencies, { reason }, [id = '', name = '']) {
    if (!ONE_LINE.test(name)) throw new UsageError('The name must be one line with something to read in it')
    const change = { app_name: name.trim() }
    await decide(dependencies, { action: 'rename', ids: [readId(id)], reason, change: () => change })
  },
})

export const hide = visibilityCommand('hide', 'hidden', 'takes apps out of what is published')
export const show = visibilityCommand('show', 'public', 'publishes apps, hidden or private ones')

function visibilityCommand(action: string, visibility: string, summary: string) {
  return command({
    summary,
    takes: 'ID...',
    options: REASON,
    work: (dependencies, { reason }, ids) =>
      decide(dependencies, { action, ids: ids.map(readId), reason, change: () => ({ visibility }) }),
  })
}

export const tag = command({
  summary: 'adds subcategories to apps or removes them',
  takes: 'ID...',
  options: {
    add: list('SUBCATEGORY', 'adds this one', oneOf(SUBCATEGORIES)),
    remove: list('SUBCATEGORY', 'removes this one', z.string()),
    ...REASON,
  },
  check({ add, remove }) {
    if (add.length + remove.length === 0)
      throw new UsageError('tag needs --add SUBCATEGORY or --remove SUBCATEGORY')
  },
  async work(dependencies, { add, remove, reason }, ids) {
    await decide(dependencies, {
      action: 'tag',
      ids: ids.map(readId),
      reason,
      change: ({ subcategories: tags }) => ({
        subcategories: [...new Set([...tags, ...add])].filter((name) => !remove.includes(name)),
      }),
    })
  },
})

export const alias = command({
  summary: 'counts the usage of apps for another one, or for themselves again',
  takes: 'ID...',
  options: {
    of: option('ID', 'the app that the usage counts for', z.string()),
    none: flag('the apps are aliases of no other app'),
    ...REASON,
  },
  check({ of, none }) {
    if ((of === undefined) !== none) throw new UsageError('alias needs either --of ID or --none')
  },
  async work(dependencies, { of, reason }, ids) {
    const change = { alias_of: of === undefined ? null : readId(of) }
    await decide(dependencies, { action: 'alias', ids: ids.map(readId), reason, change: () => change })
  },
})
