/** Entry point of `npm run copy-store`: copies one store into another. Summary on stdout, notes on stderr. */
import '../../pipeline/program/runtime.js'
import { existsSync, realpathSync } from 'node:fs'
import { copyStore } from '../store/copy-store.ts'
import { DATABASE_URL_FORM, isDatabaseUrl } from '../store/database-url.ts'
import {
  exitCodeOf,
  parseCommandLine,
  runAsProcess,
  type CommandLine,
} from '../../pipeline/program/program.ts'
import { OperatorError } from '../http/errors.ts'
import { describePlace, openStoreAsItIs, openStoreAt } from '../store/open-store.ts'

const USAGE = 'npm run -s copy-store -- --from STORE --to STORE'
const HELP = [
  `Usage: ${USAGE}`,
  '',
  'Copies every table of one store into an empty one, in one transaction; the first stays unchanged.',
  'Stop the service first: later writes are not copied.',
  '',
  'A STORE is an SQLite file, such as data/service.sqlite, or',
  DATABASE_URL_FORM,
  '(the password may come from PGPASSWORD or ~/.pgpass instead).',
].join('\n')

/** Copies the store of the arguments; resolves to the exit code. */
export function copyStoreCommand(line: CommandLine): Promise<number> {
  return exitCodeOf(line, () => run(line))
}

async function run(line: CommandLine): Promise<void> {
  const options = {
    from: { type: 'string' },
    to: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  } as const
  const { from, to, help } = parseCommandLine({ args: [...line.args], options }, USAGE).values
  if (help === true) {
    line.print(HELP)
    return
  }
  if (from === undefined || to === undefined)
    throw new OperatorError(`Name the source and the target: ${USAGE}`)
  checkPlaces(from, to)
  await move(from, to, line)
}

async function move(from: string, to: string, { print, note }: CommandLine): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const source = await openStoreAsItIs(from)
  closing.defer(() => source.close())
  const target = await openStoreAt(to, new Date())
  closing.defer(() => target.close())
  const tables = await copyStore(source, target)
  print(['table\trows', ...tables.map(({ name, rows }) => `${name}\t${rows}`)].join('\n'))
  const use = isDatabaseUrl(to)
    ? 'with DATABASE_URL set to it'
    : 'as service.sqlite in DATA_DIR, without DATABASE_URL'
  note(`Copied ${describePlace(from)} to ${describePlace(to)}; the service uses the copy ${use}.`)
}

function checkPlaces(from: string, to: string): void {
  for (const place of [from, to]) {
    if (place.includes('://') && !isDatabaseUrl(place)) {
      throw new OperatorError(`The address of a database must be ${DATABASE_URL_FORM}`)
    }
  }
  if (!isDatabaseUrl(from) && !existsSync(from)) throw new OperatorError(`There is no file "${from}"`)
  if (samePlace(from, to)) throw new OperatorError('--from and --to name the same store')
}

function samePlace(from: string, to: string): boolean {
  if (isDatabaseUrl(from) || isDatabaseUrl(to)) return from === to
  return existsSync(to) && realpathSync(from) === realpathSync(to)
}

if (import.meta.main) await runAsProcess(copyStoreCommand)
