/** Formats numbers for people. */

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })
const EVEN = new Intl.NumberFormat('en', {
  notation: 'compact',
  minimumSignificantDigits: 3,
  maximumSignificantDigits: 3,
})
const EXACT = new Intl.NumberFormat('en')
const PERCENT = new Intl.NumberFormat('en', {
  style: 'percent',
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
})

/** Up to three digits and a unit: `48.3T`, `58M`. */
export function compact(value: bigint): string {
  return COMPACT.format(value)
}

/** Three digits and a unit, for columns: `48.3T`, `58.0M`; below 1000 every digit. */
export function even(value: bigint): string {
  return value < 1000n ? EXACT.format(value) : EVEN.format(value)
}

/** Every digit, in groups: `48,278,728,110,234`. */
export function exact(value: bigint): string {
  return EXACT.format(value)
}

/** A number with its noun: `1 app`, `2,345 apps`. */
export function counted(number: bigint | number, noun: string): string {
  return `${EXACT.format(number)} ${noun}${BigInt(number) === 1n ? '' : 's'}`
}

/** Growth in percent of a nonzero number, with one decimal: `+12.3%`. */
export function percent(value: bigint, of: bigint): string {
  return `+${PERCENT.format(Number((value * 1000n) / of) / 1000)}`
}

/** A share in percent, with one decimal; `<0.1%` instead of a rounded zero. */
export function share(part: bigint, whole: bigint): string {
  if (whole === 0n) return '–'
  const thousandths = Number((part * 10_000n) / whole) / 10
  return part > 0n && thousandths < 1 ? '<0.1%' : PERCENT.format(thousandths / 1000)
}

/** `part` as a whole number of `steps` of `whole`, for drawings. */
export function scaled(part: bigint, whole: bigint, steps: number): number {
  return whole === 0n ? 0 : Number((part * BigInt(steps)) / whole)
}
