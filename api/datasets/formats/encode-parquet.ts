/** Rankings as Parquet, written by DuckDB: the snapshot's own connection may not touch files, so one in memory does. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import type { RankingRow } from '../../../pipeline/contract/dataset.ts'
import { jsonText } from '../../http/respond.ts'

const CREATE_PAGE = `
  CREATE TEMP TABLE page AS
  SELECT unnest(from_json($1, '[{
    "app_id": "BIGINT", "app_name": "VARCHAR", "rank": "BIGINT", "total_requests": "BIGINT",
    "total_tokens": "DECIMAL(38,0)"
  }]'), recursive := true)`

/** Encodes rows; `metadata` becomes the file's key-value metadata. */
export type EncodeParquet = (
  rows: readonly RankingRow[],
  metadata: Readonly<Record<string, string>>,
) => Promise<Buffer>

/** zstd-compressed Parquet; total_tokens is decimal(38, 0). */
export const encodeParquet: EncodeParquet = async (rows, metadata) => {
  const folder = await mkdtemp(join(tmpdir(), 'rankings-'))
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  try {
    const path = join(folder, `${randomUUID()}.parquet`)
    const connection = await instance.connect()
    await connection.run(CREATE_PAGE, [jsonText(rows)])
    await connection.run(
      `COPY page TO ${literal(path)} (FORMAT parquet, COMPRESSION zstd, KV_METADATA {${keyValues(metadata)}})`,
    )
    connection.closeSync()
    return await readFile(path)
  } finally {
    instance.closeSync()
    await rm(folder, { recursive: true, force: true })
  }
}

function keyValues(metadata: Readonly<Record<string, string>>): string {
  return Object.entries(metadata)
    .map(([key, value]) => `${key}: ${literal(value)}`)
    .join(', ')
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
