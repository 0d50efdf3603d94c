/**
 * Makes the bundled sample from weekly figures: `npm run sample -- PATH_TO_REFERENCE_FOLDER [OUTPUT_FOLDER]`.
 *
 * The reference folder holds usage_weekly.csv and rankings_weekly.csv, as test/golden/published/ does. The same
 * figures always give the same bytes. How the sample relates to its source is told in data/README.md.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { addDays } from '../../pipeline/contract/calendar.ts'
import { SUBCATEGORIES } from '../../pipeline/contract/taxonomy.ts'

const USAGE = 'Usage: npm run sample -- PATH_TO_REFERENCE_FOLDER [OUTPUT_FOLDER]'

const USAGE_COLUMNS = ['window_end', 'app_id', 'app_name', 'total_tokens', 'total_requests']
const RANKING_COLUMNS = ['window_end', 'category', 'subcategory', 'sort', 'rank', 'app_id']

const DAYS_IN_WEEK = 7

/**
 * Percent of a week that falls on each weekday, Sunday first. The source publishes weeks only; a mild dip at the
 * weekend keeps the sample from looking flat and is no measurement.
 */
const WEEKDAY_PERCENT = [12n, 15n, 16n, 16n, 15n, 15n, 11n]

/**
 * Tags that no published list shows. GDevelop (2299688) is in every coding list and in none of the four lists of
 * coding's subcategories that were published whole or down to smaller apps, which leaves coding's fifth.
 */
const DEDUCED_TAGS: ReadonlyMap<string, string> = new Map([['2299688', 'native-app-builder']])

const ATTRIBUTION =
  'Source: OpenRouter (openrouter.ai/apps), as of the day after the last day of each seven-day window ' +
  '(windows ending 2026-07-27 to 2026-08-31); CC BY 4.0. ' +
  'Changed: each weekly figure is spread over its seven days, and the models are invented.\n'

/**
 * The source tells no models, so these are made up, under an author that nobody takes for one. An app has one model; every
 * third app goes on to the next with each week, so that shares move.
 */
const MODELS = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', 'theta'] as const
const SWITCHING_APPS = 3n

/** Before any row of an operator's own registry, which may have another app, or a hidden one, under the same id. */
const UPDATED_AT = '1970-01-01T00:00:00Z'

type Row = Readonly<Record<string, string>>

/** A fault of the input or of the call, told to the person at the keyboard without a stack. */
class SampleError extends Error {
  override name = 'SampleError'
}

function main(args: readonly string[]): void {
  const [reference, output = import.meta.dirname] = args
  if (reference === '--help' || reference === '-h') return void process.stdout.write(`${USAGE}\n`)
  if (reference === undefined || reference.startsWith('-') || args.length > 2) throw new SampleError(USAGE)
  const usage = readTable(join(reference, 'usage_weekly.csv'), USAGE_COLUMNS)
  const rankings = readTable(join(reference, 'rankings_weekly.csv'), RANKING_COLUMNS)

  rmSync(join(output, 'usage'), { recursive: true, force: true })
  const days = dailyRows(usage)
  for (const [day, rows] of days) {
    write(join(output, 'usage', `date=${day}`, 'weekly-figures.csv'), [
      'ts,app_id,prompt_tokens,completion_tokens,requests,model',
      ...rows,
    ])
  }
  const apps = registryRows(usage, tagsOf(rankings))
  write(join(output, 'apps', 'sample.csv'), [
    'app_id,app_name,visibility,subcategories,alias_of,updated_at',
    ...apps,
  ])
  writeFileSync(join(output, 'ATTRIBUTION'), ATTRIBUTION)
  process.stderr.write(`${days.size} days and ${apps.length} apps written to ${output}\n`)
}

/** The usage rows of each day; the split into prompt and completion is unknown, so all tokens stand as prompt. */
function dailyRows(usage: readonly Row[]): Map<string, string[]> {
  const days = new Map<string, string[]>()
  const weeks = [...new Set(usage.map((row) => field(row, 'window_end')))].toSorted()
  for (const row of usage) {
    const lastDay = field(row, 'window_end')
    const week = weekEndingOn(lastDay)
    const model = modelOf(BigInt(field(row, 'app_id')), weeks.indexOf(lastDay))
    const tokens = spread(amount(row, 'total_tokens'), week)
    const requests = spread(amount(row, 'total_requests'), week)
    for (const [index, day] of week.entries()) {
      if (requests[index] === 0n && tokens[index] !== 0n) {
        throw new SampleError(`App ${row['app_id']} would have tokens without a request on ${day}`)
      }
      const line = `${day}T00:00:00Z,${row['app_id']},${tokens[index]},0,${requests[index]},${model}`
      days.set(day, [...(days.get(day) ?? []), line])
    }
  }
  return new Map([...days].toSorted(([left], [right]) => left.localeCompare(right)))
}

function modelOf(app: bigint, week: number): string {
  const steps = app % SWITCHING_APPS === 0n ? week : 0
  return `sample/${MODELS[(Number(app % BigInt(MODELS.length)) + steps) % MODELS.length]}`
}

function weekEndingOn(lastDay: string): string[] {
  return Array.from({ length: DAYS_IN_WEEK }, (_, index) => addDays(lastDay, index + 1 - DAYS_IN_WEEK))
}

/** Parts of `total` in the shape of the weekdays. Shares of the running sum are rounded, so the parts sum to it. */
function spread(total: bigint, days: readonly string[]): bigint[] {
  let percent = 0n
  let given = 0n
  return days.map((day) => {
    percent += WEEKDAY_PERCENT[new Date(`${day}T00:00:00Z`).getUTCDay()] ?? 0n
    const part = (total * percent) / 100n - given
    given += part
    return part
  })
}

/** The tags of each app over all weeks: an app is in a subcategory's list only when it carries the tag. */
function tagsOf(rankings: readonly Row[]): Map<string, Set<string>> {
  const tags = new Map<string, Set<string>>([...DEDUCED_TAGS].map(([app, tag]) => [app, new Set([tag])]))
  for (const row of rankings) {
    const subcategory = field(row, 'subcategory')
    if (subcategory === '') continue
    if (!SUBCATEGORIES.some((known) => known === subcategory)) {
      throw new SampleError(`rankings_weekly.csv: unknown subcategory ${subcategory}`)
    }
    const app = field(row, 'app_id')
    tags.set(app, (tags.get(app) ?? new Set()).add(subcategory))
  }
  const untagged = rankings.find((row) => row['category'] === 'coding' && !tags.has(field(row, 'app_id')))
  if (untagged !== undefined) {
    throw new SampleError(`App ${untagged['app_id']} is in a coding list, but its subcategory is not known`)
  }
  return tags
}

/** One row per app, under the name of its newest week. */
function registryRows(usage: readonly Row[], tags: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const newest = new Map<string, Row>()
  for (const row of usage) {
    const known = newest.get(field(row, 'app_id'))
    if (known === undefined || field(known, 'window_end') < field(row, 'window_end')) {
      newest.set(field(row, 'app_id'), row)
    }
  }
  return [...newest]
    .toSorted(([left], [right]) => Number(left) - Number(right))
    .map(([app, row]) => {
      const subcategories = [...(tags.get(app) ?? [])].toSorted().join('|')
      return `${app},${quoted(field(row, 'app_name'))},public,${subcategories},,${UPDATED_AT}`
    })
}

function quoted(text: string): string {
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function field(row: Row, column: string): string {
  const value = row[column]
  if (value === undefined) throw new SampleError(`Column ${column} is missing in a row`)
  return value
}

function amount(row: Row, column: string): bigint {
  const text = field(row, column)
  if (!/^\d+$/.test(text)) {
    throw new SampleError(`usage_weekly.csv: ${column} of app ${row['app_id']} is "${text}", not an integer`)
  }
  return BigInt(text)
}

function readTable(path: string, columns: readonly string[]): Row[] {
  if (!existsSync(path)) throw new SampleError(`${path} is not there`)
  const [header, ...lines] = readFileSync(path, 'utf8').trimEnd().split(/\r?\n/).map(cells)
  if (header?.join() !== columns.join())
    throw new SampleError(`${path}: the columns must be ${columns.join()}`)
  return lines.map((values, index) => {
    if (values.length !== columns.length) {
      throw new SampleError(
        `${path}, line ${index + 2}: ${values.length} columns instead of ${columns.length}`,
      )
    }
    return Object.fromEntries(columns.map((column, position) => [column, values[position] ?? '']))
  })
}

/** The cells of one CSV line; a quoted cell may hold commas and doubled quotes, but no line break. */
function cells(line: string): string[] {
  return [...`,${line}`.matchAll(/,(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, inQuotes, plain]) => inQuotes?.replaceAll('""', '"') ?? plain ?? '',
  )
}

function write(path: string, lines: readonly string[]): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, lines.join('\n') + '\n')
}

try {
  main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof SampleError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 2
}
