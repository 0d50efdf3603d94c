/** Figures in the form people read. */

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })
const EXACT = new Intl.NumberFormat('en')
const PERCENT = new Intl.NumberFormat('en', {
  style: 'percent',
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
})

/** Three digits and a unit: `48.3T`. */
export function compact(value: bigint): string {
  return COMPACT.format(value)
}

/** Every digit, in groups: `48,278,728,110,234`. */
export function exact(value: bigint): string {
  return EXACT.format(value)
}

/** A number with its noun: `1 app`, `2,345 apps`. */
export function counted(number: bigint | number, noun: string): string {
  return `${EXACT.format(number)} ${noun}${BigInt(number) === 1n ? '' : 's'}`
}

/** A number in percent of another, which is not 0: `+12.3%`; without a fraction from 100 % on. */
export function percent(value: bigint, of: bigint): string {
  const tenths = (value * 1000n) / of
  const number = Number(tenths) / 10
  return `+${tenths < 1000n ? number.toFixed(1) : EXACT.format(Math.round(number))}%`
}

/** A part of a whole in percent, one digit after the point; `<0.1%` for what would round to nothing. */
export function share(part: bigint, whole: bigint): string {
  if (whole === 0n) return '–'
  const thousandths = Number((part * 10_000n) / whole) / 10
  return part > 0n && thousandths < 1 ? '<0.1%' : PERCENT.format(thousandths / 1000)
}
