import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { SNAPSHOTS_FOLDER, SNAPSHOTS_PATH } from '../../../../pipeline/contract/files.ts'
import { retainSnapshots } from '../../../../api/datasets/snapshots/retained.ts'
import { catalogueOf } from '../../../../api/datasets/snapshots/catalogue.ts'
import { memoryLog } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { recordSnapshot } from '../../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const IDS = ['20261120T020000Z', '20261119T020000Z', '20261118T020000Z'] as const

const FACTS = {
  as_of: '2026-11-20T02:00:00Z',
  first_day: '2026-11-01',
  data_through: '2026-11-19',
  days_restated: 3,
  publisher: 'Test',
  attribution: 'Source: Test',
}
const ROWS = { apps: 5, app_daily: 11 }
const ORIGIN = 'https://data.example/'
const PUBLISHER = { '@type': 'Organization', name: 'Test', url: ORIGIN }
/** Fields that both vocabularies share. */
const SHARED = {
  name: 'Rankings',
  description: 'Which apps use models.',
  url: ORIGIN,
  identifier: `${ORIGIN}snapshots/20261120T020000Z`,
  license: 'https://creativecommons.org/licenses/by/4.0/',
  creator: PUBLISHER,
  publisher: PUBLISHER,
  creditText: 'Source: Test',
  keywords: ['rankings'],
  inLanguage: 'en',
  isAccessibleForFree: true,
  datePublished: '2026-11-20T02:00:00Z',
  temporalCoverage: '2026-11-01/2026-11-19',
  version: '1.0.0+20261120T020000Z',
}
const FILE = {
  name: 'apps.csv',
  contentUrl: `${ORIGIN}apps.csv`,
  contentSize: '5 B',
  encodingFormat: 'text/csv',
  sha256: 'a'.repeat(64),
}
const CROISSANT = {
  '@context': { cr: 'http://mlcommons.org/croissant/' },
  '@type': 'sc:Dataset',
  'dct:conformsTo': 'http://mlcommons.org/croissant/1.1',
  ...SHARED,
  isBasedOn: 'Source: somebody',
  citeAs: '@misc{x}',
  distribution: [
    { '@type': 'cr:FileObject', '@id': 'apps.csv', ...FILE },
    { '@type': 'cr:FileSet', '@id': 'months', includes: '*.parquet' },
  ],
  recordSet: [{ field: [] }],
}
const FILES = [
  'app-rankings.duckdb',
  'apps.parquet',
  'apps.csv',
  'README.md',
  'LICENSE',
  'croissant.json',
  'SHA256SUMS',
].map((name) => ({ name, bytes: 0, sha256: 'a'.repeat(64) }))

/** Writes the describing files of a snapshot into `folder`. */
function describeSnapshot(folder: string, id: string): void {
  mkdirSync(folder, { recursive: true })
  const record = { id, version: 'v1', ...FACTS, rows: ROWS, files: FILES }
  writeFileSync(join(folder, 'record.json'), JSON.stringify(record))
  writeFileSync(join(folder, 'croissant.json'), JSON.stringify(CROISSANT))
}

/** A data folder in which each of these snapshots has its describing files. */
function describeSnapshots(): string {
  const dataDir = folders.make()
  for (const id of IDS) describeSnapshot(join(dataDir, SNAPSHOTS_FOLDER, id), id)
  return dataDir
}

describe('catalogueOf', () => {
  it('reads the folder once for a list of any number of snapshots', () => {
    const { log } = memoryLog()
    const retained = retainSnapshots(describeSnapshots(), log)
    let looks = 0
    const ids = () => {
      looks += 1
      return retained.ids()
    }
    const catalogue = catalogueOf({ ...retained, ids })
    expect(catalogue.list().map(({ id }) => id)).toEqual(IDS)
    expect(looks).toBe(1)
  })

  it('lists a snapshot again once it is readable, and logs the fault once', () => {
    const { log, messages } = memoryLog()
    const dataDir = describeSnapshots()
    const catalogue = catalogueOf(retainSnapshots(dataDir, log))
    const file = join(dataDir, SNAPSHOTS_FOLDER, IDS[1], 'record.json')
    renameSync(file, `${file}.away`)
    for (let look = 0; look < 3; look++) expect(catalogue.list()).toHaveLength(2)
    expect(catalogue.find(IDS[1])).toBeUndefined()
    writeFileSync(file, '{}')
    for (let look = 0; look < 3; look++) expect(catalogue.list()).toHaveLength(2)
    expect(messages()).toHaveLength(1)
    renameSync(`${file}.away`, file)
    expect(catalogue.list()).toHaveLength(3)
  })

  it('describes a snapshot by its files', () => {
    const dataDir = describeSnapshots()
    const [id] = IDS
    const { log } = memoryLog()
    const { files, ...entry } = catalogueOf(retainSnapshots(dataDir, log)).find(id) ?? {}
    expect(entry).toStrictEqual({
      id,
      version: 'v1',
      state: 'retained',
      url: `${SNAPSHOTS_PATH}/${id}`,
      rows: ROWS,
      ...FACTS,
    })
    expect(files?.map(({ name, media_type }) => [name, media_type])).toEqual([
      ['app-rankings.duckdb', 'application/octet-stream'],
      ['apps.parquet', 'application/vnd.apache.parquet'],
      ['apps.csv', 'text/csv; charset=utf-8; header=present'],
      ['README.md', 'text/markdown; charset=utf-8'],
      ['LICENSE', 'text/plain; charset=utf-8'],
      ['croissant.json', 'application/ld+json; profile="http://mlcommons.org/croissant/1.1"'],
      ['SHA256SUMS', 'text/plain; charset=utf-8'],
    ])
  })

  it('describes a snapshot to search engines only in schema.org terms', () => {
    const { log } = memoryLog()
    const catalogue = catalogueOf(retainSnapshots(describeSnapshots(), log))
    expect(catalogue.metadata(IDS[0])).toEqual({
      citeAs: '@misc{x}',
      structuredData: {
        '@context': 'https://schema.org',
        '@type': 'Dataset',
        ...SHARED,
        isBasedOn: { '@type': 'CreativeWork', creditText: 'Source: somebody' },
        distribution: [{ '@type': 'DataDownload', ...FILE }],
      },
    })
  })

  it('finds only retained snapshots: neither a retracted one nor another folder', () => {
    const { log } = memoryLog()
    const dataDir = describeSnapshots()
    describeSnapshot(join(dataDir, 'other'), IDS[0])
    const catalogue = catalogueOf(retainSnapshots(dataDir, log))
    expect(catalogue.find(IDS[1])?.id).toBe(IDS[1])
    recordSnapshot(dataDir, IDS[1], { retracted: { at: '2026-11-20T02:00:00Z', reason: 'x' } })
    expect(catalogue.find(IDS[1])).toBeUndefined()
    expect(catalogue.find('../other')).toBeUndefined()
  })
})
