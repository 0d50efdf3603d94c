/** CONTRACT 8: no private fact is in any published file. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { filesBelow, makeFolder } from '../../support/folders.ts'
import { queryWarehouse } from '../../support/pipeline/in-process.ts'
import {
  currentSnapshot,
  publish,
  query,
  register,
  withDatabase,
  writeRaw,
} from '../../support/pipeline/nightly.ts'

/** Rows of the registry of which nothing is public any more. */
const ROWS = [
  '5801733204918273001,Zzyzx-verborgen-Ü,hidden,cli-agent,,2026-01-01',
  '5801733204918273002,Qwfpg-privat-漢,private,cli-agent,,2026-01-01',
  '5801733204918273003,Xylem-alias-of-public,public,cli-agent,77001,2026-01-01',
  '5801733204918273004,Xylem-hidden-alias,hidden,cli-agent,77001,2026-01-01',
  '5801733204918273005,Xylem-alias-of-hidden,public,cli-agent,5801733204918273001,2026-01-01',
]
/** An app that the first night publishes; the second hides it, and restates the day. */
const BEFORE = '5801733204918273006,Public-before-Jvkzq,public,game,,2025-12-01'
const HIDDEN = '5801733204918273006,Public-before-Jvkzq,hidden,cli-agent,,2026-01-01'
const UNREGISTERED = '5801733204918273999'

const DAY = '2026-01-02'
const HEADER = 'ts,app_id,prompt_tokens,completion_tokens,requests,request_id,account_id'
const USAGE = [
  ...[...ROWS, HIDDEN, UNREGISTERED]
    .map((row) => row.split(',', 1)[0])
    .map((id) => `${id},1000,1,1,Kwyjibo-request-${id},Kwyjibo-account-${id}`),
  ...Array<string>(200).fill('77001,1,1,1,,Kwyjibo-account'),
  '77001,Kwyjibo-rejected-cell,1,1,,Kwyjibo-account',
].map((row) => `${DAY},${row}`)

const dataDir = makeFolder('Jqvxw-data-folder')

const SECRETS: readonly string[] = [
  ...[...ROWS, HIDDEN, UNREGISTERED].flatMap((row) => row.split(',').slice(0, 2)),
  'Kwyjibo-request',
  'Kwyjibo-account',
  'Kwyjibo-rejected-cell',
  'Kwyjibo-file-name',
  'Jqvxw-data-folder',
]

let texts = new Map<string, string>()

beforeAll(async () => {
  const seen = '77001,Seen by everyone,public,cli-agent,,2026-01-01'
  register(dataDir, [seen, ...ROWS, BEFORE], 'Kwyjibo-file-name.csv')
  writeRaw(dataDir, `usage/date=${DAY}/Kwyjibo-file-name.csv`, [HEADER, ...USAGE].join('\n'))
  await publish(dataDir, '2026-01-03T02:00:00Z')
  register(dataDir, [HIDDEN], 'Kwyjibo-later.csv')
  writeRaw(dataDir, `usage/date=${DAY}/Kwyjibo-file-name-2.csv`, [HEADER, ...USAGE, ''].join('\n'))
  await publish(dataDir, '2026-01-03T03:00:00Z')
  texts = await publishedTexts(currentSnapshot(dataDir))
})

it('the search finds public facts, in the database and as text', () => {
  const found = [...texts].filter(([, text]) => text.includes('Seen by everyone') && text.includes('77001'))
  expect(found.map(([place]) => place)).toEqual(
    expect.arrayContaining(['table main.apps', 'table main.rankings']),
  )
})

it('no published total reveals the hidden traffic', async () => {
  const totals = await queryWarehouse(dataDir, 'SELECT sum(tokens_read) AS tokens FROM days')
  const [{ tokens } = { tokens: null }] = totals
  expect(tokens).toMatch(/^\d{5}$/)
  const found = [...texts].filter(([, text]) => new RegExp(`\\b${tokens}\\b`).test(text))
  expect(found.map(([place]) => place)).toEqual([])
})

it.each(SECRETS)('%s is in no published table, view, macro or file, nor in its bytes', (secret) => {
  expect([...texts].filter(([, text]) => text.includes(secret)).map(([place]) => place)).toEqual([])
  const needles = [Buffer.from(secret), ...(/^\d+$/.test(secret) ? [littleEndian(BigInt(secret))] : [])]
  const snapshot = currentSnapshot(dataDir)
  const found = filesBelow(snapshot).filter((file) => {
    const bytes = readFileSync(join(snapshot, file))
    return needles.some((needle) => bytes.includes(needle))
  })
  expect(found).toEqual([])
})

function littleEndian(id: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(id)
  return bytes
}

/** Everything published, as text: relations and macros of the DuckDB file, and the other files decoded. */
async function publishedTexts(snapshot: string): Promise<Map<string, string>> {
  const database = join(snapshot, 'app-rankings.duckdb')
  const found = new Map<string, string>()
  const relations = await query(
    database,
    `SELECT 'table' AS kind, schema_name, table_name AS name, sql FROM duckdb_tables()
     UNION ALL SELECT 'view', schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal`,
  )
  for (const { kind, schema_name, name, sql } of relations) {
    const rows = await query(database, `SELECT * FROM "${schema_name}"."${name}"`)
    found.set(`${kind} ${schema_name}.${name}`, JSON.stringify([sql, rows]))
  }
  const macros = await query(
    database,
    'SELECT macro_definition, comment FROM duckdb_functions() WHERE NOT internal',
  )
  found.set('macros', JSON.stringify(macros))
  for (const file of filesBelow(snapshot)) found.set(file, await decoded(join(snapshot, file)))
  return found
}

async function decoded(file: string): Promise<string> {
  if (!file.endsWith('.parquet')) return readFileSync(file, 'utf8')
  return await withDatabase(async (connection) => {
    const reader = await connection.runAndReadAll('FROM read_parquet($file)', { file })
    return JSON.stringify([reader.columnNames(), reader.getRowsJson()])
  })
}
