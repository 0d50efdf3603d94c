/** The process of casesOf: runs an exported function of a file, and prints its figures and the peak memory. */
import { megabytesOf, type Figures } from './measure.ts'

const [, , file = '', name = '', task = ''] = process.argv
const cases: Readonly<Record<string, (task: unknown) => Figures>> = await import(file)
const figures = await cases[name]?.(JSON.parse(task))
process.stdout.write(JSON.stringify({ figures, peakMegabytes: megabytesOf(process.pid, 'VmHWM') }))
