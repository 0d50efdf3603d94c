import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { run } from '../../pipeline/commands/run.ts'
import { readConfig } from '../../pipeline/config.ts'
import { placeSample } from '../../pipeline/sample.ts'
import { SILENT } from '../support/in-process.ts'
import { TemporaryFolders, writeRaw } from '../support/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const DAYS = 42

function isComplete(dataDir: string): boolean {
  const raw = join(dataDir, 'raw')
  const parts = readdirSync(raw).toSorted()
  return parts.join() === 'ATTRIBUTION,apps,usage' && readdirSync(join(raw, 'usage')).length === DAYS
}

/** Leaves `raw` as a copy does that had put these parts in their place. */
function interruptAfter(raw: string, placed: readonly string[]): void {
  const aside = join(raw, '.sample')
  mkdirSync(aside)
  for (const part of readdirSync(raw)) {
    if (part !== '.sample' && !placed.includes(part)) renameSync(join(raw, part), join(aside, part))
  }
}

describe('the sample', () => {
  it('goes into an empty folder, once', () => {
    const dataDir = folders.make()
    expect(placeSample(dataDir)).toBe(true)
    expect(isComplete(dataDir)).toBe(true)
    expect(placeSample(dataDir)).toBe(false)
  })

  it('goes where there are empty folders alone', () => {
    const dataDir = folders.make()
    mkdirSync(join(dataDir, 'raw', 'usage', 'date=2026-01-01'), { recursive: true })
    mkdirSync(join(dataDir, 'raw', 'apps'))
    expect(placeSample(dataDir)).toBe(true)
    expect(isComplete(dataDir)).toBe(true)
  })

  it('stays away from a registry without usage', () => {
    const dataDir = folders.make()
    writeRaw(dataDir, 'apps/registry.csv', 'mine')
    expect(placeSample(dataDir)).toBe(false)
    expect(readdirSync(join(dataDir, 'raw'))).toEqual(['apps'])
    expect(readFileSync(join(dataDir, 'raw', 'apps', 'registry.csv'), 'utf8')).toBe('mine')
  })

  it('stays away from snapshots, though nothing is current', () => {
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

  it('stays away where a cluster counts the usage', async () => {
    const dataDir = folders.make()
    const source = 'clickhouse://127.0.0.1:1/default?table=usage'
    const config = readConfig({ DATA_DIR: dataDir, USAGE_SOURCE: source })
    const world = {
      config,
      progress: SILENT,
      now: () => new Date(),
      print: () => undefined,
      send: async () => undefined,
    }
    await expect(run.prepare(['--with-sample'])(world)).rejects.toThrow('127.0.0.1:1')
    expect(existsSync(join(dataDir, 'raw'))).toBe(false)
  })
})
