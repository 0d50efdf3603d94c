/** CONTRACT 9: the bundled sample goes into a DATA_DIR without snapshots and raw usage. */
import { existsSync, globSync, mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from '../../../pipeline/commands/run.ts'
import { readConfig } from '../../../pipeline/config.ts'
import { placeSample } from '../../../pipeline/sources/sample.ts'
import { listFiles, listUsageDays } from '../../../pipeline/sources/drop-folder.ts'
import { makeFolder } from '../../support/folders.ts'
import { SILENT } from '../../support/pipeline/in-process.ts'
import { publish, queryCurrent, register, writeRaw } from '../../support/pipeline/nightly.ts'

const DAYS = 42

function isComplete(dataDir: string): boolean {
  const raw = join(dataDir, 'raw')
  const parts = readdirSync(raw).toSorted()
  return parts.join() === 'ATTRIBUTION,apps,usage' && listUsageDays(raw).length === DAYS
}

describe('the sample', () => {
  it.each([
    ['an empty folder', []],
    ['empty folders', ['raw/usage/date=2026-01-01', 'raw/apps']],
  ])('is copied into %s, once', (_, made) => {
    const dataDir = makeFolder()
    for (const folder of made) mkdirSync(join(dataDir, folder), { recursive: true })
    expect(placeSample(dataDir)).toBe(true)
    expect(isComplete(dataDir)).toBe(true)
    expect(placeSample(dataDir)).toBe(false)
  })

  it('is copied beside names that the pipeline skips, without changing them', () => {
    const others = [
      '.gitkeep',
      'apps/.gitkeep',
      'usage/_notes',
      'usage/date=2026-07-21/.unfinished.csv',
      'usage/.old/a.csv',
    ]
    const dataDir = makeFolder()
    for (const name of others) writeRaw(dataDir, name, name)
    expect(placeSample(dataDir)).toBe(true)
    expect(listUsageDays(join(dataDir, 'raw'))).toHaveLength(DAYS)
    expect(listFiles(join(dataDir, 'raw'), 'apps').map(({ name }) => name)).toEqual(['apps/sample.csv'])
    for (const name of others) expect(readFileSync(join(dataDir, 'raw', name), 'utf8')).toBe(name)
    expect(placeSample(dataDir)).toBe(false)
  })

  it('is copied beside a registry and a credit line without usage, whose rows count, and leaves both as they are', async () => {
    const dataDir = makeFolder()
    const raw = join(dataDir, 'raw')
    register(dataDir, ['142576,Mine,hidden,,,2025-01-01T00:00:00Z'])
    writeRaw(dataDir, 'ATTRIBUTION', 'Source: me')
    await publish(dataDir, '2026-09-01T02:00:00Z', '--with-sample')
    expect(isComplete(dataDir)).toBe(true)
    expect(readdirSync(join(raw, 'apps')).toSorted()).toEqual(['registry.csv', 'sample.csv'])
    const rows = await queryCurrent(dataDir, 'SELECT app_id FROM apps ORDER BY app_id LIMIT 1')
    expect(rows).toEqual([{ app_id: '143418' }])
    expect(readFileSync(join(raw, 'ATTRIBUTION'), 'utf8')).toMatch(/^Source: me\nSource: OpenRouter/)
    expect(placeSample(dataDir)).toBe(false)
  })

  it('leaves a registry as it is that has the name of its own', () => {
    const dataDir = makeFolder()
    writeRaw(dataDir, 'apps/sample.csv', 'mine')
    expect(placeSample(dataDir)).toBe(true)
    expect(readFileSync(join(dataDir, 'raw', 'apps', 'sample.csv'), 'utf8')).toBe('mine')
    expect(isComplete(dataDir)).toBe(true)
  })

  it('is not copied if there are snapshots, even without a current one', () => {
    const dataDir = makeFolder()
    mkdirSync(join(dataDir, 'snapshots', '20260107T020000Z'), { recursive: true })
    expect(placeSample(dataDir)).toBe(false)
    expect(existsSync(join(dataDir, 'raw'))).toBe(false)
  })

  it.each([
    ['before anything is in place', () => true],
    ['before a registry and usage', (name: string) => name !== 'ATTRIBUTION'],
    ['before usage', (name: string) => name.startsWith('usage/')],
    ['between two days', (name: string) => name > 'usage/date=2026-07-30'],
    ['before its end', () => false],
  ])('is completed by the next start if its copy was interrupted %s', (_, isMissing) => {
    const dataDir = makeFolder()
    placeSample(dataDir)
    const names = () => new Set(globSync('{.sample,**}', { cwd: join(dataDir, 'raw') }))
    const whole = names()
    for (const name of globSync('{ATTRIBUTION,*/**/*.csv}', { cwd: join(dataDir, 'raw') }))
      if (isMissing(name)) rmSync(join(dataDir, 'raw', name))
    writeRaw(dataDir, '.sample/usage/date=2026-08-01/weekly-figures.csv', 'ts,app_')
    expect(placeSample(dataDir)).toBe(true)
    expect(names()).toEqual(whole)
    expect(readFileSync(join(dataDir, 'raw/usage/date=2026-08-01/weekly-figures.csv'), 'utf8')).toMatch(/\n$/)
  })

  it('is not completed beside usage that arrived while its copy was interrupted', () => {
    const dataDir = makeFolder()
    writeRaw(dataDir, '.sample/usage/date=2026-08-01/weekly-figures.csv', 'ts')
    writeRaw(dataDir, 'usage/date=2026-01-05/own.csv', 'ts')
    expect(placeSample(dataDir)).toBe(false)
    expect(listUsageDays(join(dataDir, 'raw')).map(({ day }) => day)).toEqual(['2026-01-05'])
  })

  it('is not copied if a cluster counts the usage', async () => {
    const dataDir = makeFolder()
    const source = 'clickhouse://127.0.0.1:1/default?table=usage'
    const config = readConfig({ DATA_DIR: dataDir, USAGE_SOURCE: source })
    const dependencies = { config, progress: SILENT, now: () => new Date(), print: () => undefined }
    const ended = run.work(dependencies, { accept: [], 'with-sample': true }, [])
    await expect(ended).rejects.toThrow('127.0.0.1:1')
    expect(existsSync(join(dataDir, 'raw'))).toBe(false)
  })
})
