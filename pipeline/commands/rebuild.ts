/** `rebuild`: makes a damaged warehouse anew from raw/; what is published stays. */
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { parseCommandLine } from '../contract/program.ts'
import type { Config } from '../config.ts'
import { snapshotId } from '../contract/calendar.ts'
import { DataError, isForbidden, isShortage } from '../errors.ts'
import { currentSnapshot } from '../snapshot/list.ts'
import { WAREHOUSE_FILE, underLock } from '../duckdb/warehouse.ts'
import { JSON_OPTION } from './command.ts'
import type { Command, Dependencies } from './command.ts'
import { run } from './run.ts'

/** Of the warehouse and of its log of changes, which goes with it. */
const ENDINGS = ['', '.wal'] as const

export const rebuild: Command = {
  usage: 'rebuild [--as-of TIME] [--json]',
  summary:
    'sets a damaged warehouse aside and runs, so that every day is counted again from raw/; what is published stays',
  prepare(args) {
    parseCommandLine({ args, options: { ...JSON_OPTION, 'as-of': { type: 'string' } } })
    const work = run.prepare(args)
    return async (dependencies) => {
      // A pointer that cannot be switched stops the run before anything is moved.
      currentSnapshot(dependencies.config.dataDir)
      await setAside(dependencies)
      await work(dependencies)
    }
  },
}

/** Never deleted: an operator may still want to look into it. */
async function setAside({ config, progress, now }: Dependencies): Promise<void> {
  await refuseHeld(config)
  const { dataDir } = config
  const path = join(dataDir, WAREHOUSE_FILE)
  const aside = freeName(dataDir, now())
  for (const ending of ENDINGS) {
    if (existsSync(`${path}${ending}`)) renameSync(`${path}${ending}`, `${aside}${ending}`)
  }
  if (existsSync(aside)) progress.note(`The warehouse is set aside as ${aside}`)
}

/** The time tells when it was set aside; of several within one second, about when. */
function freeName(dataDir: string, time: Date): string {
  const path = join(dataDir, `warehouse-${snapshotId(time)}.duckdb`)
  const isTaken = ENDINGS.some((ending) => existsSync(`${path}${ending}`))
  return isTaken ? freeName(dataDir, new Date(time.getTime() + 1000)) : path
}

/** A warehouse in use is not damaged, or somebody else is mending it; one that is not opened for other reasons may be whole. */
async function refuseHeld(config: Config): Promise<void> {
  try {
    await underLock(config, () => undefined)
  } catch (error) {
    if (!(error instanceof DataError) || isShortage(error.cause) || isForbidden(error.cause)) throw error
  }
}
