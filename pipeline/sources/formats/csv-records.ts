/** Counts the records of a CSV file by its quotes alone, to prove that DuckDB's reader found them all. */
import { CARRIAGE_RETURN, LINE_FEED } from './text-file.ts'

const QUOTE = 34
const COMMA = 44
const SPACE = 32

/** State inside a record after the bytes so far (RFC 4180). */
type Place = 'begin' | 'plain' | 'quoted' | 'after quote' | 'padding' | 'broken'

export type RecordCounter = {
  readonly look: (lines: Buffer) => void
  /** Non-blank records, including the header and an unclosed one. */
  readonly records: () => number
  /** Set if the last record has an unclosed quote: the byte at which it begins. */
  readonly unclosedFrom: () => number | undefined
  /** The first record with misplaced quotes, counted from 1 with the header; undefined if there is none. */
  readonly firstBroken: () => number | undefined
}

/** Counts like DuckDB's reader: a line break outside quotes ends a record; the rest after a misplaced quote is skipped. */
export function countRecords(): RecordCounter {
  let place: Place = 'begin'
  let isBlank = true
  let records = 0
  let offset = 0
  let recordStart = 0
  let firstBroken: number | undefined

  const endRecord = (nextStart: number) => {
    if (!isBlank) records += 1
    isBlank = true
    place = 'begin'
    recordStart = nextStart
  }
  const step = (byte: number) => {
    isBlank = false
    place = placeAfter(place, byte)
    if (place === 'broken') firstBroken ??= records + 1
  }
  const follow = (lines: Buffer) => {
    for (let at = 0; at < lines.length; at += 1) {
      if (place === 'quoted') {
        const quote = lines.indexOf(QUOTE, at)
        if (quote < 0) return
        at = quote
      }
      const byte = lines[at] ?? LINE_FEED
      if (place !== 'quoted' && isLineEnd(byte)) endRecord(offset + at + 1)
      else step(byte)
    }
  }
  return {
    look(lines) {
      // Most files have no quotes, and counting lines is much faster.
      if (place === 'begin' && isBlank && !lines.includes(QUOTE)) {
        records += countFilledLines(lines)
        recordStart = offset + lines.length
      } else follow(lines)
      offset += lines.length
    },
    records: () => records + (isBlank ? 0 : 1),
    unclosedFrom: () => (place === 'quoted' ? recordStart : undefined),
    firstBroken: () => firstBroken,
  }
}

function placeAfter(place: Place, byte: number): Place {
  switch (place) {
    case 'begin':
      return byte === QUOTE ? 'quoted' : byte === COMMA ? 'begin' : 'plain'
    case 'plain':
      return byte === COMMA ? 'begin' : 'plain'
    case 'quoted':
      return byte === QUOTE ? 'after quote' : 'quoted'
    case 'after quote':
      return byte === QUOTE ? 'quoted' : afterField(byte)
    case 'padding':
      return afterField(byte)
    case 'broken':
      return 'broken'
  }
}

/** DuckDB ignores spaces after a quoted field. */
function afterField(byte: number): Place {
  return byte === COMMA ? 'begin' : byte === SPACE ? 'padding' : 'broken'
}

function isLineEnd(byte: number): boolean {
  return byte === LINE_FEED || byte === CARRIAGE_RETURN
}

/** Non-empty lines, including an unfinished last one. */
export function countFilledLines(lines: Buffer): number {
  const lineEnd = lines.includes(LINE_FEED) ? LINE_FEED : CARRIAGE_RETURN
  let filled = 0
  let start = 0
  while (start < lines.length) {
    const found = lines.indexOf(lineEnd, start)
    const end = found < 0 ? lines.length : found
    const length = end - start - (lines[end - 1] === CARRIAGE_RETURN ? 1 : 0)
    if (length > 0) filled += 1
    start = end + 1
  }
  return filled
}
