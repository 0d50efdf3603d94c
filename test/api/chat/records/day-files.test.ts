/** The files of days, while others may remove their empty folders. */
import {
  existsSync,
  globSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { createDayFiles } from '../../../../api/chat/records/day-files.ts'
import { addDays } from '../../../../pipeline/contract/calendar.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const DAYS = 300

it('are created though their empty folders vanish repeatedly', async () => {
  const root = folders.make()
  const files = createDayFiles(root, () => new Date('2026-03-10T12:00:00Z'))
  // Removes the folder once, unless the file exists first.
  const clear = async (day: number, { signal }: AbortController) => {
    const folder = join(root, `date=${addDays('2026-03-10', -day)}`)
    const gone = () =>
      rmdir(folder).then(
        () => true,
        () => false,
      )
    while (!signal.aborted && !(await gone())) continue
  }
  for (let day = 0; day < DAYS; day += 1) {
    const over = new AbortController()
    const clearing = [clear(day, over), clear(day, over), clear(day, over)]
    await files.append(addDays('2026-03-10', -day), [`${day}\n`])
    over.abort()
    await Promise.all(clearing)
  }
  await files.close()
  const lines = globSync(join(root, '*', '*')).map((path) => Number(readFileSync(path, 'utf8')))
  expect(lines.toSorted((a, b) => a - b)).toEqual(Array.from({ length: DAYS }, (_, day) => day))
})

/** The open files below a folder, as Linux lists them. */
const OPEN_FILES = '/proc/self/fd'
function openFilesIn(folder: string): string[] {
  const paths = readdirSync(OPEN_FILES).flatMap((descriptor) => {
    try {
      return [readlinkSync(join(OPEN_FILES, descriptor))]
    } catch {
      // Without the one that listed them.
      return []
    }
  })
  return paths.filter((path) => path.startsWith(folder)).toSorted()
}

it.runIf(existsSync(OPEN_FILES))(
  'are open for the two newest days alone, however long the process runs',
  async () => {
    const root = folders.make()
    const files = createDayFiles(root, () => new Date('2026-03-10T12:00:00Z'))
    for (const day of ['2026-03-08', '2026-03-09', '2026-03-10']) await files.append(day, ['{}\n'])
    const open = openFilesIn(root)
    expect(open.map((path) => basename(dirname(path)))).toEqual(['date=2026-03-09', 'date=2026-03-10'])
    await files.close()
    expect(openFilesIn(root)).toEqual([])
  },
)

it('lose no acknowledged line if another file takes their place, as in log rotation', async () => {
  const root = folders.make()
  const files = createDayFiles(root, () => new Date('2026-03-10T12:00:00Z'))
  await files.append('2026-03-10', ['first\n'])
  const [path = ''] = globSync(join(root, '*', '*'))
  const rotated = `${path}.1`
  renameSync(path, rotated)
  writeFileSync(path, 'theirs\n')
  await files.append('2026-03-10', ['second\n'])
  renameSync(path, `${path}.2`)
  await files.append('2026-03-10', ['third\n'])
  await files.close()
  expect([readFileSync(rotated, 'utf8'), readFileSync(`${path}.2`, 'utf8')]).toEqual(['first\n', 'theirs\n'])
  const written = globSync(join(root, '*', '*.ndjson')).map((name) => readFileSync(name, 'utf8'))
  expect(written).toEqual(['second\nthird\n'])
})
