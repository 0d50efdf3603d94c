import { Decimal, Int64, Table, Utf8, tableToIPC, vectorFromArray } from 'apache-arrow'
import type { RankingRow } from '../../../pipeline/contract/dataset.ts'

const TOKENS = new Decimal(0, 38, 128)
const WORDS = 4
const WORD_BITS = 32n

/** An Arrow IPC stream with one batch; total_tokens is decimal128(38, 0), the metadata stands in the schema. */
export function encodeArrow(rows: readonly RankingRow[], metadata: Readonly<Record<string, string>>): Buffer {
  const table = new Table({
    app_id: vectorFromArray(
      rows.map((row) => row.app_id),
      new Int64(),
    ),
    app_name: vectorFromArray(
      rows.map((row) => row.app_name),
      new Utf8(),
    ),
    rank: vectorFromArray(
      rows.map((row) => row.rank),
      new Int64(),
    ),
    total_requests: vectorFromArray(
      rows.map((row) => row.total_requests),
      new Int64(),
    ),
    total_tokens: vectorFromArray(
      rows.map((row) => decimalWords(row.total_tokens)),
      TOKENS,
    ),
  })
  for (const [key, value] of Object.entries(metadata)) table.schema.metadata.set(key, value)
  return Buffer.from(tableToIPC(table, 'stream'))
}

/** A whole number of 0 or more as 128 bits, the least significant word first. */
function decimalWords(text: string): Uint32Array {
  const value = BigInt(text)
  return Uint32Array.from({ length: WORDS }, (_, word) =>
    Number(BigInt.asUintN(32, value >> (BigInt(word) * WORD_BITS))),
  )
}
