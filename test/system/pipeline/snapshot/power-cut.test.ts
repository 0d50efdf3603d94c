/** CONTRACT 8: data is on disk before anything points to it: files, then names, then the pointer. */
import fs, { readdirSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join, relative } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { apps } from '../../../../pipeline/apps.ts'
import { makeFolder } from '../../../support/folders.ts'
import { currentSnapshot, deliver, publish, runCommand, withApps } from '../../../support/pipeline/nightly.ts'
import { runCommandLine } from '../../../support/processes.ts'

const ID = '20260110T020000Z'

let dataDir = ''

beforeEach(() => {
  dataDir = withApps('One')
  deliver(dataDir, '2026-01-05', ['1,1,1'])
})

/** The order of syncs and renames during `work`; paths are relative to DATA_DIR. */
async function stepsOf(work: () => Promise<unknown>): Promise<string[]> {
  const { openSync, fsyncSync, renameSync } = fs
  const steps: string[] = []
  const paths = new Map<number, string>()
  const place = (path: string) => relative(dataDir, path) || '.'
  Object.assign(fs, {
    openSync(path: string, flags: string) {
      const descriptor = openSync(path, flags)
      paths.set(descriptor, path)
      return descriptor
    },
    fsyncSync(descriptor: number) {
      steps.push(`sync ${place(paths.get(descriptor) ?? '')}`)
      fsyncSync(descriptor)
    },
    renameSync(from: string, to: string) {
      steps.push(`rename ${place(to)}`)
      renameSync(from, to)
    },
  })
  syncBuiltinESMExports()
  try {
    await work()
  } finally {
    Object.assign(fs, { openSync, fsyncSync, renameSync })
    syncBuiltinESMExports()
  }
  return steps
}

it('a snapshot', async () => {
  const steps = await stepsOf(() => publish(dataDir, '2026-01-10T02:00:00Z'))
  const files = readdirSync(currentSnapshot(dataDir), { recursive: true, encoding: 'utf8' }).map(
    (name) => `sync snapshots/.building-${ID}/${name}`,
  )
  expect(steps.slice(-11 - files.length)).toEqual([
    ...files,
    `sync snapshots/.building-${ID}`,
    `rename snapshots/${ID}`,
    'sync snapshots',
    `sync snapshots/records/.${ID}.json`,
    `rename snapshots/records/${ID}.json`,
    'sync snapshots/records',
    'rename current',
    'sync .',
    'sync .last-run.json',
    'rename last-run.json',
    'sync .',
  ])
})

it('a retraction', async () => {
  await publish(dataDir, '2026-01-10T02:00:00Z')
  deliver(dataDir, '2026-01-06', ['1,1,1'])
  await publish(dataDir, '2026-01-11T02:00:00Z')
  const id = '20260111T020000Z'
  expect(await stepsOf(() => runCommand(dataDir, 'retract', id, '--reason', 'A test'))).toEqual([
    `sync snapshots/records/.${id}.json`,
    `rename snapshots/records/${id}.json`,
    'sync snapshots/records',
    'rename current',
    'sync .',
    `rename snapshots/.pruned-${id}`,
  ])
})

it('an imported file', async () => {
  const path = join(makeFolder(), 'rows.csv')
  writeFileSync(path, 'ts,app_id,prompt_tokens,completion_tokens\n2026-01-06,1,1,1\n')
  const steps = await stepsOf(() => runCommand(dataDir, 'import', path))
  const folder = 'raw/usage/date=2026-01-06'
  const [name = ''] = readdirSync(join(dataDir, folder))
  const synced: unknown = expect.stringMatching(`^sync ${folder}/.${name}-`)
  expect(steps).toEqual([synced, `rename ${folder}/${name}`, `sync ${folder}`])
})

it('a decision about an app', async () => {
  const hide = ['hide', '1', '--reason', 'A test']
  const steps = await stepsOf(() => runCommandLine(apps, hide, { DATA_DIR: dataDir }))
  const [name = ''] = readdirSync(join(dataDir, 'raw/apps')).filter((each) => each.startsWith('decision-'))
  expect(steps).toEqual([`sync raw/apps/.${name}`, `rename raw/apps/${name}`, 'sync raw/apps'])
})
