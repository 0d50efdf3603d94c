/** `verify`: compares published files with their checksums. */
import { DataError } from '../errors.ts'
import { JSON_OPTION, flag } from '../program/options.ts'
import { UsageError } from '../program/program.ts'
import { pluralize } from '../program/terminal.ts'
import { sendNotice } from '../run-end.ts'
import { currentSnapshot, listSnapshots, noSuchSnapshot } from '../snapshot/list.ts'
import { brokenFiles, measureOnce } from '../snapshot/verify.ts'
import { command, printResult, type Dependencies } from './command.ts'

export const verify = command({
  summary:
    'compares the files of a snapshot (default: the current one) with their checksums; if a file is damaged, it is listed and the exit code is 1',
  takes: '[ID]',
  options: { all: flag('verifies every retained snapshot'), ...JSON_OPTION },
  check({ all }, [id]) {
    if (id !== undefined && all) throw new UsageError('verify takes one snapshot, or --all')
  },
  async work(dependencies, { all, json }, [id]) {
    const { dataDir } = dependencies.config
    const ids = all ? listSnapshots(dataDir) : [snapshotNamed(dataDir, id)]
    const broken = findBroken(dependencies, ids)
    const count = `${pluralize(broken.length, 'published file')} broken`
    const end = `${pluralize(ids.length, 'snapshot')} verified: ${count}`
    printResult(dependencies, json, { verified: ids, broken }, [...broken, end])
    if (broken.length === 0) return
    const message = `${count}, the first: ${broken[0]}`
    await sendNotice(dependencies, { event: 'broken', message, snapshot: null })
    throw new DataError(
      `${count}. Restore them from a backup, or withdraw the snapshot: npm run nightly -- retract ID --reason TEXT. ` +
        'The next run publishes correct figures from raw/',
    )
  },
})

function snapshotNamed(dataDir: string, id: string | undefined): string {
  const wanted = id ?? currentSnapshot(dataDir)
  if (wanted === undefined) throw new UsageError('There is no current snapshot: name one, or give --all')
  if (!listSnapshots(dataDir).includes(wanted)) throw noSuchSnapshot(dataDir, wanted)
  return wanted
}

function findBroken({ config, progress }: Dependencies, ids: readonly string[]): string[] {
  const measure = measureOnce()
  return ids.flatMap((id, index) => {
    const found = brokenFiles(config.dataDir, id, measure)
    progress.step('verify', index + 1, ids.length)
    // A snapshot that is pruned or retracted meanwhile is not damaged.
    return listSnapshots(config.dataDir).includes(id) ? found : []
  })
}
