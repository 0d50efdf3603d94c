/** `rebuild`: rebuilds a damaged warehouse from raw/; published snapshots stay. */
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { WAREHOUSE_FILE } from '../contract/files.ts'
import { underLock } from '../duckdb/warehouse.ts'
import { DataError } from '../errors.ts'
import { JSON_OPTION } from '../program/options.ts'
import { AS_OF_OPTION, USUAL_RUN } from '../run-options.ts'
import { currentSnapshot } from '../snapshot/list.ts'
import { command, type Dependencies } from './command.ts'
import { runAndPrune } from './run.ts'

/** Suffixes of the warehouse and of its WAL, which belong together. */
const ENDINGS = ['', '.wal'] as const

export const rebuild = command({
  summary:
    'sets a damaged warehouse aside and runs: every day is counted again from raw/, and published snapshots stay',
  options: { ...AS_OF_OPTION, ...JSON_OPTION },
  async work(given, { 'as-of': asOf, json }) {
    const dependencies = asOf === undefined ? given : { ...given, now: () => asOf }
    // A pointer that cannot be switched fails the run; find out before anything is moved.
    currentSnapshot(given.config.dataDir)
    await setAside(given)
    await runAndPrune(dependencies, USUAL_RUN, { json })
  },
})

/** Renames the warehouse; it is never deleted, since an operator may want to inspect it. */
async function setAside({ config, progress, now }: Dependencies): Promise<void> {
  // Fails if the warehouse is in use, and so not damaged, or if it cannot be opened for another reason.
  await underLock(config, () => undefined).catch((error: unknown) => {
    if (!(error instanceof DataError)) throw error
  })
  const path = join(config.dataDir, WAREHOUSE_FILE)
  const time = now().toISOString().replaceAll(/[-:.]/g, '')
  const aside = join(config.dataDir, `warehouse-${time}.duckdb`)
  for (const ending of ENDINGS) {
    if (existsSync(`${path}${ending}`)) renameSync(`${path}${ending}`, `${aside}${ending}`)
  }
  if (existsSync(aside)) progress.note(`The warehouse is set aside as ${aside}`)
}
