/** CONTRACT 9: the bundled sample goes into an empty DATA_DIR alone. */
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { run } from '../../../pipeline/commands/run.ts'
import { readConfig } from '../../../pipeline/config.ts'
import { placeSample } from '../../../pipeline/sources/sample.ts'
import { listRegistryFiles, listUsageDays } from '../../../pipeline/sources/drop-folder.ts'
import { SILENT } from '../../support/pipeline/in-process.ts'
import { TemporaryFolders, writeRaw } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const DAYS = 42

function isComplete(dataDir: string): boolean {
  const raw = join(dataDir, 'raw')
  const parts = readdirSync(raw).toSorted()
  const days = readdirSync(join(raw, 'usage')).filter(
    (day) => readdirSync(join(raw, 'usage', day)).length > 0,
  )
  return parts.join() === 'ATTRIBUTION,apps,usage' && days.length === DAYS
}

/** Puts `raw` into the state after a copy of these parts. */
function interruptAfter(raw: string, placed: readonly string[]): void {
  const aside = join(raw, '.sample')
  mkdirSync(aside)
  for (const part of readdirSync(raw)) {
    if (part !== '.sample' && !placed.includes(part)) renameSync(join(raw, part), join(aside, part))
  }
}

describe('the sample', () => {
  it('is copied into an empty folder, once', () => {
    const dataDir = folders.make()
    expect(placeSample(dataDir)).toBe(true)
    expect(isComplete(dataDir)).toBe(true)
    expect(placeSample(dataDir)).toBe(false)
  })

  it('is copied if only empty folders exist', () => {
    const dataDir = folders.make()
    mkdirSync(join(dataDir, 'raw', 'usage', 'date=2026-01-01'), { recursive: true })
    mkdirSync(join(dataDir, 'raw', 'apps'))
    expect(placeSample(dataDir)).toBe(true)
    expect(isComplete(dataDir)).toBe(true)
  })

  it('is copied beside names that the pipeline skips, without changing them', () => {
    const others = [
      '.gitkeep',
      'apps/.gitkeep',
      'usage/_notes',
      'usage/date=2026-07-21/.unfinished.csv',
      'usage/.old/a.csv',
    ]
    const dataDir = folders.make()
    for (const name of others) writeRaw(dataDir, name, name)
    expect(placeSample(dataDir)).toBe(true)
    expect(listUsageDays(join(dataDir, 'raw'))).toHaveLength(DAYS)
    expect(listRegistryFiles(join(dataDir, 'raw')).map(({ name }) => name)).toEqual(['apps/registry.csv'])
    for (const name of others) expect(readFileSync(join(dataDir, 'raw', name), 'utf8')).toBe(name)
    expect(placeSample(dataDir)).toBe(false)
  })

  it('is completed beside such names after half of its days were moved', () => {
    const dataDir = folders.make()
    writeRaw(dataDir, 'usage/.gitkeep', '')
    placeSample(dataDir)
    const raw = join(dataDir, 'raw')
    const usage = join(raw, 'usage')
    mkdirSync(join(raw, '.sample/usage'), { recursive: true })
    for (const day of readdirSync(usage).slice(10))
      renameSync(join(usage, day), join(raw, '.sample/usage', day))
    expect(placeSample(dataDir)).toBe(true)
    expect(listUsageDays(raw)).toHaveLength(DAYS)
  })

  it('is not copied if there is a registry without usage', () => {
    const dataDir = folders.make()
    writeRaw(dataDir, 'apps/registry.csv', 'mine')
    expect(placeSample(dataDir)).toBe(false)
    expect(readdirSync(join(dataDir, 'raw'))).toEqual(['apps'])
    expect(readFileSync(join(dataDir, 'raw', 'apps', 'registry.csv'), 'utf8')).toBe('mine')
  })

  it('is not copied if there are snapshots, even without a current one', () => {
    const dataDir = folders.make()
    mkdirSync(join(dataDir, 'snapshots', '20260107T020000Z'), { recursive: true })
    expect(placeSample(dataDir)).toBe(false)
    expect(existsSync(join(dataDir, 'raw'))).toBe(false)
  })

  it.each([{ placed: [] }, { placed: ['ATTRIBUTION'] }, { placed: ['ATTRIBUTION', 'apps'] }])(
    'is completed when its copy was interrupted after $placed',
    ({ placed }) => {
      const dataDir = folders.make()
      placeSample(dataDir)
      const raw = join(dataDir, 'raw')
      interruptAfter(raw, placed)
      expect(placeSample(dataDir)).toBe(true)
      expect(isComplete(dataDir)).toBe(true)
    },
  )

  it('is not copied if a cluster counts the usage', async () => {
    const dataDir = folders.make()
    const source = 'clickhouse://127.0.0.1:1/default?table=usage'
    const config = readConfig({ DATA_DIR: dataDir, USAGE_SOURCE: source })
    const dependencies = {
      config,
      progress: SILENT,
      now: () => new Date(),
      print: () => undefined,
      send: async () => undefined,
    }
    await expect(run.prepare(['--with-sample'])(dependencies)).rejects.toThrow('127.0.0.1:1')
    expect(existsSync(join(dataDir, 'raw'))).toBe(false)
  })
})
