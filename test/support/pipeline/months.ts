/** Usage over four months, and the check that a night publishes the same files as a first run over the same input. */
import { appendFileSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { GATES } from '../../../pipeline/run-options.ts'
import type { Report } from '../../../pipeline/run-end.ts'
import { runAt } from './in-process.ts'
import {
  copyRaw,
  currentSnapshot,
  deliver,
  queryCurrent,
  register,
  type TemporaryFolders,
} from './nightly.ts'

export const DAYS = ['2025-12-30', '2026-02-03', '2026-02-28', '2026-03-05']

/** App 4 has usage but is not registered, 5 and 9 are registered without usage. */
const REGISTRY = [
  '1,One,public,cli-agent,,2025-01-01',
  '2,Two,public,game,,2025-01-01',
  '3,Of two,public,,2,2025-01-01',
  '5,Unused,public,,,2025-01-01',
  '6,Hidden,hidden,,,2025-01-01',
  '7,Seven,public,,,2025-01-01',
  '9,Nine,public,,,2025-01-01',
]

/** A DATA_DIR with usage on these days, and its nights. */
export class Months {
  /** The present day; the run's data ends on the day before. */
  today = '2026-03-06'
  readonly dataDir: string
  readonly #folders: TemporaryFolders

  constructor(folders: TemporaryFolders, dataDir: string) {
    this.#folders = folders
    this.dataDir = dataDir
  }

  fill(): void {
    register(this.dataDir, REGISTRY)
    for (const day of DAYS) this.deliver(day)
  }

  deliver(day: string, file = 'rows.csv', tokens = 100): void {
    const rows = [1, 2, 3, 4, 6, 7].map((app) => `${app},${tokens * app + Number(day.slice(-2))},${app}`)
    deliver(this.dataDir, day, rows, file)
  }

  /** Appends a row to the registry. */
  decide(row: string): void {
    appendFileSync(join(this.dataDir, 'raw/apps/registry.csv'), `\n${row}`)
  }

  run(): Promise<Report> {
    // Accepts all gates, which are not tested here.
    return runAt(this.dataDir, `${this.today}T02:00:00Z`, { accepted: [...GATES] })
  }

  /** Runs the night after a day with usage. */
  nextNight(): Promise<Report> {
    this.deliver(this.today)
    this.today = addDays(this.today, 1)
    return this.run()
  }

  /** A first run over the same input at the same time gives the same files, with the rows of the table. */
  async expectAsAnew(): Promise<void> {
    const other = this.#folders.make()
    copyRaw(other, join(this.dataDir, 'raw'))
    await runAt(other, `${this.today}T02:00:00Z`)
    expect(monthsOf(this.dataDir)).toEqual(monthsOf(other))
    for (const month of monthsOf(this.dataDir)) {
      for (const name of filesOf(month)) {
        const [published, anew] = [this.dataDir, other].map((each) =>
          readFileSync(join(currentSnapshot(each), name)),
        )
        expect(published?.equals(anew ?? Buffer.of()), name).toBe(true)
      }
    }
    await this.expectSameRows()
  }

  async expectSameRows(): Promise<void> {
    const folder = currentSnapshot(this.dataDir)
    for (const table of TABLES) {
      const rows = await queryCurrent(this.dataDir, `FROM ${table} ORDER BY ALL`)
      const files = `'${join(folder, table, '*.parquet')}'`
      expect(await queryCurrent(this.dataDir, `FROM ${files} ORDER BY ALL`)).toEqual(rows)
    }
  }
}

const TABLES = ['app_daily', 'model_daily'] as const

/** The files of a month. */
function filesOf(month: string): string[] {
  return TABLES.map((table) => `${table}/month=${month}.parquet`)
}

export function monthsOf(dataDir: string): string[] {
  const names = readdirSync(join(currentSnapshot(dataDir), 'app_daily')).toSorted()
  return names.flatMap((name) => /^month=(.*)\.parquet$/.exec(name)?.[1] ?? [])
}
