/** `verify`: compares published files with their checksums, and makes broken ones anew. */
import { UsageError, parseCommandLine } from '../contract/program.ts'
import { SNAPSHOTS_FOLDER } from '../contract/files.ts'
import { pluralize } from '../contract/terminal.ts'
import type { BrokenFile } from '../contract/verification.ts'
import { DataError } from '../errors.ts'
import { sendNotices } from '../notices.ts'
import { currentSnapshot, listSnapshots, noSuchSnapshot } from '../snapshot/list.ts'
import { brokenFiles, leaveVerification, measureOnce } from '../snapshot/verify.ts'
import { JSON_OPTION, printResult } from './command.ts'
import type { Command, Dependencies } from './command.ts'

export const verify: Command = {
  usage: 'verify [ID | --all] [--json]',
  summary:
    'compares the files of a snapshot with their checksums, by default those of the current one; a broken file is named and the exit code is 1',
  options: {
    '--all': 'verify every retained snapshot',
    '--json': 'print the result as JSON',
  },
  prepare(args) {
    const { values, positionals } = parseCommandLine({
      args,
      allowPositionals: true,
      options: { ...JSON_OPTION, all: { type: 'boolean', default: false } },
    })
    const [id, ...rest] = positionals
    if (rest.length > 0 || (id !== undefined && values.all)) {
      throw new UsageError('verify takes one snapshot, or --all')
    }
    const { all, json } = values
    return (dependencies) => verifySnapshots(dependencies, { id, all, json })
  },
}

type Request = { readonly id: string | undefined; readonly all: boolean; readonly json: boolean }

async function verifySnapshots(dependencies: Dependencies, { id, all, json }: Request): Promise<void> {
  const { config, now } = dependencies
  const ids = all ? listSnapshots(config.dataDir) : [oneOf(config.dataDir, id)]
  const broken = findBroken(dependencies, ids)
  leaveVerification(config.dataDir, { ids, broken, at: all ? now() : undefined })
  const found = `${pluralize(ids.length, 'snapshot')} verified: ${pluralize(broken.length, 'broken file')}`
  printResult(dependencies, json, { verified: ids, broken }, [...broken.map(describe), found])
  if (broken.length > 0) await fail(dependencies, broken)
}

function oneOf(dataDir: string, id: string | undefined): string {
  const wanted = id ?? currentSnapshot(dataDir)
  if (wanted === undefined) throw new UsageError('There is no current snapshot: name one, or give --all')
  if (!listSnapshots(dataDir).includes(wanted)) throw noSuchSnapshot(dataDir, wanted)
  return wanted
}

/** A snapshot that is pruned or retracted meanwhile is not broken. */
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
    `${pluralize(broken.length, 'published file')} broken. The API answers 500 for such a file. Restore it from a backup, ` +
      'or withdraw the snapshot: npm run nightly -- retract ID --reason TEXT',
  )
}
