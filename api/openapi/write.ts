/**
 * Entry point of `npm run openapi`: writes api/openapi.json and its examples from a service over the bundled sample.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { format, resolveConfig } from 'prettier'
import { LAST_RUN_FILE } from '../../pipeline/contract/last-run.ts'
import { failureText } from '../../pipeline/program/program.ts'
import { EXIT_USAGE, note } from '../../pipeline/program/terminal.ts'
import { createKey } from '../accounts/keys/key-store.ts'
import { readSettings } from '../config.ts'
import { takeNoArguments } from '../process/entry.ts'
import { OperatorError } from '../http/errors.ts'
import { createLog } from '../process/log.ts'
import { serve, type Service } from '../serve.ts'
import { collectExamples } from './collect-examples.ts'
import { openApiDocument } from './document.ts'

const NIGHTLY = fileURLToPath(new URL('../../pipeline/nightly.ts', import.meta.url))
const AS_OF = '2026-09-01T02:00:00Z'
const NOW = new Date('2026-09-01T12:00:00Z')

const USAGE = 'npm run openapi: writes api/openapi.json and its examples from real replies over the sample.'

/** Writes JSON in the format of the repository. */
async function write(name: string, value: unknown): Promise<void> {
  const path = fileURLToPath(new URL(name, import.meta.url))
  const style = await resolveConfig(path)
  writeFileSync(path, await format(JSON.stringify(value, null, 2), { ...style, filepath: path }))
}

async function writeFrom(dataDir: string): Promise<void> {
  const { status } = spawnSync(process.execPath, [NIGHTLY, 'run', '--with-sample', '--as-of', AS_OF], {
    env: { ...process.env, DATA_DIR: dataDir },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status !== 0) throw new OperatorError('The sample could not be published: see the errors above')
  // This file holds the current time, but the examples must not change.
  rmSync(join(dataDir, LAST_RUN_FILE))
  const settings = readSettings({ DATA_DIR: dataDir, PORT: '0' })
  const service = await serve(settings, {
    log: createLog('silent'),
    clock: () => NOW,
    environment: {},
  })
  try {
    await writeDocument(service)
  } finally {
    await service.close()
  }
}

async function writeDocument({ store, routes, origin }: Service): Promise<void> {
  const key = await createKey(store, { account: 'example', kind: 'management', now: NOW })
  const examples = await collectExamples(routes, origin, key)
  await write('examples.json', examples)
  await write('../openapi.json', openApiDocument(routes, examples))
}

async function main(): Promise<void> {
  takeNoArguments(USAGE)
  const dataDir = mkdtempSync(join(tmpdir(), 'openapi-'))
  try {
    await writeFrom(dataDir)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

try {
  await main()
} catch (error) {
  note(failureText(error))
  process.exitCode = EXIT_USAGE
}
