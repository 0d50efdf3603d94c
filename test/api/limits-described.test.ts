/** CONTRACT 4.5: the documented limits and formats match the code. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { POLICIES } from '../../api/accounts/rate-limiter.ts'
import { FORMAT_NAMES } from '../../api/datasets/formats.ts'
import { PARAMETERS } from '../../api/datasets/rankings.ts'
import { DEFAULT_WINDOW_DAYS } from '../../api/datasets/window.ts'
import { FLOOR_DATE } from '../../pipeline/contract/calendar.ts'
import { RANKING_COLUMNS, rankingRowSchema } from '../../pipeline/contract/dataset.ts'
import { REPOSITORY } from '../support/processes.ts'

const read = (name: string) => readFileSync(join(REPOSITORY, name), 'utf8')
const documents = read('README.md') + read('api/README.md')
const [minute, day] = POLICIES.map(({ limit }) => limit)
const range = ({ allowed }: typeof PARAMETERS.limit) => allowed.replace('an integer from ', '')

it.each([
  `${minute} requests a minute per key`,
  `${day} per UTC day per account`,
  `the ${DEFAULT_WINDOW_DAYS} days that end on \`end_date\``,
  `A \`start_date\` before ${FLOOR_DATE} and an \`end_date\` after the last completed day are clamped`,
  FORMAT_NAMES.map((name) => `\`${name}\``).join(', '),
])('the README says "%s"', (sentence) => {
  expect(documents).toContain(sentence)
})

it.each(['limit', 'offset'] as const)('the README states range and default of %s', (name) => {
  const row = documents.split('\n').find((line) => line.startsWith(`| \`${name}\``))
  expect(row?.split('|').map((cell) => cell.trim())).toEqual(
    expect.arrayContaining([range(PARAMETERS[name]), String(PARAMETERS[name].default)]),
  )
})

it('the columns of every format equal the JSON keys, in their order', () => {
  expect(Object.keys(RANKING_COLUMNS)).toEqual(Object.keys(rankingRowSchema.shape))
})
