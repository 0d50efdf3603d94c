import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { RETRACTIONS_FOLDER, SNAPSHOTS_FOLDER } from '../../../pipeline/contract.ts'
import { retainSnapshots } from '../../../api/datasets/retained-snapshots.ts'
import { catalogueOf } from '../../../api/datasets/snapshot-catalogue.ts'
import { memoryLog } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const IDS = ['20261120T020000Z', '20261119T020000Z', '20261118T020000Z'] as const

/** A data folder in which each of these snapshots has the files that describe it. */
function describeSnapshots(): string {
  const dataDir = folders.make()
  for (const id of IDS) {
    const folder = join(dataDir, SNAPSHOTS_FOLDER, id)
    mkdirSync(folder, { recursive: true })
    const snapshot = {
      id,
      as_of: '2026-11-20T02:00:00Z',
      first_day: '2026-11-01',
      data_through: '2026-11-19',
      schema: 'v1',
      days_restated: 0,
      publisher: 'Test',
      attribution: 'Source: Test',
    }
    writeFileSync(join(folder, 'datapackage.json'), JSON.stringify({ snapshot, resources: [] }))
    writeFileSync(join(folder, 'croissant.json'), JSON.stringify({ citeAs: '', recordSet: [] }))
    writeFileSync(join(folder, 'SHA256SUMS'), '')
  }
  return dataDir
}

describe('catalogueOf', () => {
  it('looks for the snapshots once for a list of them, however many there are', () => {
    const { log } = memoryLog()
    const retained = retainSnapshots(describeSnapshots(), log)
    let looks = 0
    const ids = () => {
      looks += 1
      return retained.ids()
    }
    const catalogue = catalogueOf({ ...retained, ids }, log)
    expect(catalogue.list().map(({ id }) => id)).toEqual(IDS)
    expect(looks).toBe(1)
  })

  it('lists a snapshot again once it can be read again, and tells the fault once', () => {
    const { log, messages } = memoryLog()
    const dataDir = describeSnapshots()
    const catalogue = catalogueOf(retainSnapshots(dataDir, log), log)
    const file = join(dataDir, SNAPSHOTS_FOLDER, IDS[1], 'datapackage.json')
    renameSync(file, `${file}.away`)
    for (let look = 0; look < 3; look++) expect(catalogue.list()).toHaveLength(2)
    expect(catalogue.find(IDS[1])).toBeUndefined()
    expect(messages()).toHaveLength(1)
    renameSync(`${file}.away`, file)
    expect(catalogue.list()).toHaveLength(3)
  })
})

describe('the ids of retained snapshots', () => {
  it('leave out the retracted ones by the names of the retractions, without reading these', () => {
    const { log } = memoryLog()
    const dataDir = describeSnapshots()
    const retractions = join(dataDir, SNAPSHOTS_FOLDER, RETRACTIONS_FOLDER)
    mkdirSync(retractions)
    writeFileSync(join(retractions, `${IDS[1]}.json`), 'not read')
    expect(retainSnapshots(dataDir, log).ids()).toEqual([IDS[0], IDS[2]])
  })
})
