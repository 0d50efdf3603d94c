/** So many things in words: `1 day`, `0 days`, `2 days`. Takes nouns whose plural has an `s`. */
export function counted(count: number | bigint | string, noun: string): string {
  return `${count} ${noun}${String(count) === '1' ? '' : 's'}`
}
