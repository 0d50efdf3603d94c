/** The files of days, whose folders others may clear away while they are empty. */
import { globSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { createDayFiles } from '../../../../api/chat/records/day-files.ts'
import { addDays } from '../../../../pipeline/contract/calendar.ts'
import { TemporaryFolders } from '../../../support/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const DAYS = 300

it('are made though their empty folders vanish again and again', async () => {
  const root = folders.make()
  const files = createDayFiles(root, () => new Date('2026-03-10T12:00:00Z'))
  // Takes the folder away once, unless the file comes first.
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
  await files.finish()
  const lines = globSync(join(root, '*', '*')).map((path) => Number(readFileSync(path, 'utf8')))
  expect(lines.toSorted((a, b) => a - b)).toEqual(Array.from({ length: DAYS }, (_, day) => day))
})

it('are open for the two newest days alone, however long the process runs', async () => {
  const root = folders.make()
  const files = createDayFiles(root, () => new Date('2026-03-10T12:00:00Z'))
  for (const day of ['2026-03-08', '2026-03-09', '2026-03-10']) await files.append(day, ['{}\n'])
  const open = await files.finish()
  expect(open.map(({ path }) => basename(dirname(path)))).toEqual(['date=2026-03-09', 'date=2026-03-10'])
})

it('whose place another file has taken, as when logs are rotated, lose no line that was acknowledged', async () => {
  const root = folders.make()
  const files = createDayFiles(root, () => new Date('2026-03-10T12:00:00Z'))
  await files.append('2026-03-10', ['first\n'])
  const [path = ''] = globSync(join(root, '*', '*'))
  const rotated = `${path}.1`
  renameSync(path, rotated)
  writeFileSync(path, 'theirs\n')
  await expect(files.append('2026-03-10', ['second\n'])).rejects.toThrow(`the place of ${path}`)
  // Who was refused tries again, and finds the file that is there now.
  await files.append('2026-03-10', ['second\n'])
  await files.finish()
  expect([readFileSync(rotated, 'utf8'), readFileSync(path, 'utf8')]).toEqual(['first\n', 'theirs\nsecond\n'])
})
