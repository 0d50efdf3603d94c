/** `verify`: compares published files with their checksums, and rebuilds damaged ones. */
import { UsageError, parseCommandLine } from '../program/program.ts'
import { SNAPSHOTS_FOLDER } from '../contract/files.ts'
import { pluralize } from '../program/terminal.ts'
import type { BrokenFile } from '../contract/verification.ts'
import { openWarehouse } from '../duckdb/warehouse.ts'
import { DataError } from '../errors.ts'
import { sendNotices } from '../notices.ts'
import { currentSnapshot, listSnapshots, noSuchSnapshot } from '../snapshot/list.ts'
import { brokenFiles, leaveVerification, measureOnce } from '../snapshot/verify.ts'
import { JSON_OPTION, printResult } from './command.ts'
import { repairSnapshot } from './repair.ts'
import type { Command, Dependencies } from './command.ts'

export const verify: Command = {
  usage: 'verify [ID | --all] [--repair] [--json]',
  summary:
    'compares the files of a snapshot with their checksums, by default of the current one; if a file is damaged, it is listed and the exit code is 1',
  options: {
    '--all': 'verify every retained snapshot',
    '--repair':
      'rebuild damaged files from another snapshot, the DuckDB file or raw/, if this gives the published bytes',
    '--json': 'print the result as JSON',
  },
  prepare(args) {
    const { values, positionals } = parseCommandLine({
      args,
      allowPositionals: true,
      options: {
        ...JSON_OPTION,
        all: { type: 'boolean', default: false },
        repair: { type: 'boolean', default: false },
      },
    })
    const [id, ...rest] = positionals
    if (rest.length > 0 || (id !== undefined && values.all)) {
      throw new UsageError('verify takes one snapshot, or --all')
    }
    return (dependencies) => verifySnapshots(dependencies, { id, ...values })
  },
}

type Request = {
  readonly id: string | undefined
  readonly all: boolean
  readonly repair: boolean
  readonly json: boolean
}

async function verifySnapshots(
  dependencies: Dependencies,
  { id, all, repair, json }: Request,
): Promise<void> {
  const { config, now } = dependencies
  const ids = all ? listSnapshots(config.dataDir) : [oneOf(config.dataDir, id)]
  const found = findBroken(dependencies, ids)
  const broken = repair && found.length > 0 ? await repairAll(dependencies, found) : found
  leaveVerification(config.dataDir, { ids, broken, at: all ? now() : undefined })
  const mended = found.filter((file) => !broken.some((left) => describe(left) === describe(file)))
  printResult(dependencies, json, { verified: ids, broken, mended }, [
    ...mended.map((file) => `${describe(file)}: mended`),
    ...broken.map(describe),
    `${pluralize(ids.length, 'snapshot')} verified: ${pluralize(broken.length, 'broken file')}`,
  ])
  if (broken.length > 0) await fail(dependencies, broken)
}

function oneOf(dataDir: string, id: string | undefined): string {
  const wanted = id ?? currentSnapshot(dataDir)
  if (wanted === undefined) throw new UsageError('There is no current snapshot: name one, or give --all')
  if (!listSnapshots(dataDir).includes(wanted)) throw noSuchSnapshot(dataDir, wanted)
  return wanted
}

/** Returns the files that are still damaged. */
async function repairAll(
  { config, progress }: Dependencies,
  found: readonly BrokenFile[],
): Promise<BrokenFile[]> {
  const ids = [...new Set(found.map(({ snapshot }) => snapshot))]
  const warehouse = await openWarehouse(config.dataDir, config.memory, config.spill)
  try {
    for (const id of ids) await repairSnapshot({ connection: warehouse.connection, config, progress }, id)
  } finally {
    warehouse.close()
  }
  return ids.flatMap((id) => brokenFiles(config.dataDir, id))
}

/** A snapshot that is pruned or retracted meanwhile is not damaged. */
function findBroken({ config: { dataDir }, progress }: Dependencies, ids: readonly string[]): BrokenFile[] {
  const measure = measureOnce()
  const broken = ids.flatMap((id, index) => {
    const found = brokenFiles(dataDir, id, measure)
    progress.step('verify', index + 1, ids.length)
    return found
  })
  const retained = new Set(listSnapshots(dataDir))
  return broken.filter(({ snapshot }) => retained.has(snapshot))
}

function describe({ snapshot, file, fault }: BrokenFile): string {
  return `${SNAPSHOTS_FOLDER}/${snapshot}/${file} ${fault}`
}

async function fail({ config, send, progress }: Dependencies, broken: readonly BrokenFile[]): Promise<never> {
  const [first] = broken
  const message = `${pluralize(broken.length, 'published file')} broken, the first: ${first ? describe(first) : ''}`
  const notice = { event: 'broken', message, snapshot: first?.snapshot ?? null } as const
  await sendNotices(config, [notice], { well: false, send, progress })
  throw new DataError(
    `${pluralize(broken.length, 'published file')} broken. The API answers 500 for such a file. Rebuild it with ` +
      '--repair, restore it from a backup, or withdraw the snapshot: npm run nightly -- retract ID --reason TEXT',
  )
}
