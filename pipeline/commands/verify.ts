/** `verify`: compares published files with their checksums. */
import { UsageError, parseCommandLine } from '../program/program.ts'
import { pluralize } from '../program/terminal.ts'
import { DataError } from '../errors.ts'
import { sendNotice } from '../run-end.ts'
import { currentSnapshot, listSnapshots, noSuchSnapshot } from '../snapshot/list.ts'
import { brokenFiles, measureOnce } from '../snapshot/verify.ts'
import { JSON_OPTION, printResult } from './command.ts'
import type { Command, Dependencies } from './command.ts'

export const verify: Command = {
  usage: 'verify [ID | --all] [--json]',
  summary:
    'compares the files of a snapshot (default: the current one) with their checksums; if a file is damaged, it is listed and the exit code is 1',
  options: { '--all': 'verify every retained snapshot' },
  prepare(args) {
    const options = { ...JSON_OPTION, all: { type: 'boolean', default: false } } as const
    const { values, positionals } = parseCommandLine({ args, allowPositionals: true, options })
    const [id, ...rest] = positionals
    if (rest.length > 0 || (id !== undefined && values.all)) {
      throw new UsageError('verify takes one snapshot, or --all')
    }
    return async (dependencies) => {
      const { dataDir } = dependencies.config
      await verifySnapshots(
        dependencies,
        values.all ? listSnapshots(dataDir) : [oneOf(dataDir, id)],
        values.json,
      )
    }
  },
}

function oneOf(dataDir: string, id: string | undefined): string {
  const wanted = id ?? currentSnapshot(dataDir)
  if (wanted === undefined) throw new UsageError('There is no current snapshot: name one, or give --all')
  if (!listSnapshots(dataDir).includes(wanted)) throw noSuchSnapshot(dataDir, wanted)
  return wanted
}

async function verifySnapshots(
  dependencies: Dependencies,
  ids: readonly string[],
  json: boolean,
): Promise<void> {
  const { config, progress } = dependencies
  const measure = measureOnce()
  const broken = ids.flatMap((id, index) => {
    const found = brokenFiles(config.dataDir, id, measure)
    progress.step('verify', index + 1, ids.length)
    // A snapshot that is pruned or retracted meanwhile is not damaged.
    return listSnapshots(config.dataDir).includes(id) ? found : []
  })
  const count = `${pluralize(broken.length, 'published file')} broken`
  printResult(dependencies, json, { verified: ids, broken }, [
    ...broken,
    `${pluralize(ids.length, 'snapshot')} verified: ${count}`,
  ])
  if (broken.length === 0) return
  const notice = { event: 'broken', message: `${count}, the first: ${broken[0]}`, snapshot: null } as const
  await sendNotice(config, dependencies, notice)
  throw new DataError(
    `${count}. Restore them from a backup, or withdraw the snapshot: npm run nightly -- retract ID --reason TEXT. ` +
      'The next run publishes correct figures from raw/',
  )
}
