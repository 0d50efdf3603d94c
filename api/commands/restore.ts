/**
 * Entry point of `npm run restore`: restores a backup into an empty DATA_DIR (CONTRACT 9). Summary on stdout, notes on
 * stderr.
 */
import '../../pipeline/program/runtime.js'
import { runAsProcess, type CommandLine } from '../../pipeline/program/program.ts'
import { describeBackup, runOnFolder } from '../backup/command.ts'
import { restore } from '../backup/restore.ts'

const PROGRAM = {
  call: 'npm run -s restore -- FROM',
  text:
    'Restores the backup in the folder FROM into DATA_DIR, which must be empty or missing. Before anything is written, each ' +
    'file is compared with its checksum; an incomplete backup is rejected. Start the service afterwards: it serves ' +
    'at once, and the next run counts every day again.',
}

const RESTORE_DUMP =
  'Accounts, keys, limits and groups are not in this backup: restore the dump of their database, for example by ' +
  'pg_restore --dbname="$DATABASE_URL" rankings.dump'
const UNUSED_STORE =
  'DATABASE_URL is set, so the restored service.sqlite is not used: npm run copy-store copies it into an empty database'

/** Restores the given folder; resolves to the exit code. */
export function restoreCommand(line: CommandLine): Promise<number> {
  return runOnFolder(PROGRAM, line, async (from, { DATA_DIR: dataDir, DATABASE_URL: database }) => {
    const manifest = await restore(from, dataDir)
    line.print(describeBackup(manifest))
    line.note(`${from} is restored in ${dataDir}`)
    if (manifest.store === 'database') line.note(RESTORE_DUMP)
    if (manifest.store === 'service.sqlite' && database !== undefined) line.note(UNUSED_STORE)
  })
}

if (import.meta.main) await runAsProcess(restoreCommand)
