/** Entry point of `npm run backup`: copies a running installation (CONTRACT 9). Summary on stdout, notes on stderr. */
import '../../pipeline/program/runtime.js'
import { runAsProcess, type CommandLine } from '../../pipeline/program/program.ts'
import { backUp } from '../backup/back-up.ts'
import { describeBackup, runOnFolder } from '../backup/command.ts'

const PROGRAM = {
  call: 'npm run -s backup -- TO',
  text:
    'Copies snapshots, raw usage and service.sqlite of DATA_DIR into the folder TO, with a manifest of checksums. ' +
    'Everything may run meanwhile. Snapshots become hard links if TO is on the same file system: copy such a ' +
    'backup to another disk or machine, for example with rsync -aH. The warehouse is not copied; a run rebuilds it.',
}

const DUMP =
  'Accounts, keys, limits and groups are in the database of DATABASE_URL, which needs a backup of its own: ' +
  'pg_dump --format=custom --file=rankings.dump "$DATABASE_URL"'

/** Backs up into the given folder; resolves to the exit code. */
export function backupCommand(line: CommandLine): Promise<number> {
  return runOnFolder(PROGRAM, line, async (to, { DATA_DIR: dataDir, DATABASE_URL: database }) => {
    const hasDatabase = database !== undefined
    const manifest = await backUp({ dataDir, to, hasDatabase, now: new Date() })
    line.print(describeBackup(manifest))
    line.note(`The backup in ${to} is complete`)
    if (hasDatabase) line.note(DUMP)
  })
}

if (import.meta.main) await runAsProcess(backupCommand)
