/**
 * CONTRACT 7: aliases resolve in registries of every shape: chains, circles, and ways into a circle or to an unknown
 * app.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import * as fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { withMemoryDatabase } from '../../../pipeline/duckdb/memory-database.ts'
import { resolveAliases } from '../../../pipeline/registry/registry.ts'
import { execute } from '../../../pipeline/duckdb/statements.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

/** By id, from 1: the target of the alias. */
type Aliases = readonly (number | null)[]
type Resolved = { readonly ends: Map<number, number>; readonly faults: string[] }

const APPS = 8

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

function withRegistry(work: (connection: DuckDBConnection) => Promise<void>): Promise<void> {
  return withMemoryDatabase({ memory: '200MB', dataDir: folders.make() }, async (connection) => {
    await execute(connection, 'warehouse.sql')
    await work(connection)
  })
}

async function resolved(connection: DuckDBConnection, aliases: Aliases): Promise<Resolved> {
  const rows = aliases.map(
    (of, index) => `(${index + 1}, 'A', 'public', [], ${of}, TIMESTAMP '2026-01-01', 'a.csv', 1)`,
  )
  await connection.run('DELETE FROM registry')
  await connection.run(`INSERT INTO registry VALUES ${rows.join(', ')}`)
  const faults = await resolveAliases(connection)
  const reader = await connection.runAndReadAll('SELECT app_id, canonical_id FROM resolved ORDER BY app_id')
  return { ends: new Map(reader.getRows().map(([app, end]) => [Number(app), Number(end)])), faults }
}

/** The same in single steps from each app. */
function walked(aliases: Aliases): Resolved {
  const ends = new Map<number, number>()
  const faults: string[] = []
  for (const start of aliases.keys().map((index) => index + 1)) {
    const path = [start]
    let at = start
    let next = aliases[at - 1]
    while (typeof next === 'number' && !path.includes(next)) {
      path.push(next)
      at = next
      next = aliases[at - 1]
    }
    if (next === null) ends.set(start, at)
    if (next === undefined && path.length === 2) {
      faults.push(`alias_of of app ${start} names the unknown app ${at}`)
    }
    if (next === start && start === Math.min(...path)) {
      faults.push(`aliases go round in a circle: ${[...path, start].join(' -> ')}`)
    }
  }
  return { ends, faults: faults.toSorted() }
}

describe('aliases', () => {
  it('resolve as by single steps from each app, with the same violations', async () => {
    // The last two are not registered.
    const aliasOf = fc.option(fc.integer({ min: 1, max: APPS + 2 }), { freq: 4 })
    await withRegistry(async (connection) => {
      const property = fc.asyncProperty(
        fc.array(aliasOf, { minLength: APPS, maxLength: APPS }),
        async (aliases) => {
          expect(await resolved(connection, aliases)).toEqual(walked(aliases))
        },
      )
      await fc.assert(property, { numRuns: 200 })
    })
  })

  it('may form a chain of a thousand', async () => {
    const aliases = Array.from({ length: 1000 }, (_, index) => (index === 0 ? null : index))
    await withRegistry(async (connection) => {
      expect(await resolved(connection, aliases)).toEqual({
        ends: new Map(aliases.map((_, index) => [index + 1, 1])),
        faults: [],
      })
    })
  })

  it('may form a circle of a thousand, which is reported once', async () => {
    const aliases = Array.from({ length: 1000 }, (_, index) => ((index + 1) % 1000) + 1)
    await withRegistry(async (connection) => {
      expect(await resolved(connection, aliases)).toEqual({
        ends: new Map(),
        faults: [
          `aliases go round in a circle: ${[...aliases.keys().map((index) => index + 1), 1].join(' -> ')}`,
        ],
      })
    })
  })
})
