/** Entry of `npm run openapi`: writes api/openapi.json and its examples from a service over the bundled sample. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createKey } from '../accounts/key-store.ts'
import { readSettings } from '../config.ts'
import { EXIT_USAGE, failureText, note } from '../entry.ts'
import { createLog } from '../log.ts'
import { serve } from '../serve.ts'
import { collectExamples } from './collect-examples.ts'
import { openApiDocument } from './document.ts'

const NIGHTLY = fileURLToPath(new URL('../../pipeline/nightly.ts', import.meta.url))
const AS_OF = '2026-09-01T02:00:00Z'
const NOW = new Date('2026-09-01T12:00:00Z')

function write(name: string, value: unknown): void {
  writeFileSync(new URL(name, import.meta.url), `${JSON.stringify(value, null, 2)}\n`)
}

async function main(dataDir: string): Promise<void> {
  spawnSync(process.execPath, [NIGHTLY, 'run', '--with-sample', '--as-of', AS_OF], {
    env: { ...process.env, DATA_DIR: dataDir },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const settings = readSettings({ DATA_DIR: dataDir, PORT: '0' })
  const service = await serve(settings, {
    log: createLog('silent'),
    clock: () => NOW,
    environment: {},
  })
  const key = await createKey(service.store, { account: 'example', kind: 'management', now: NOW })
  const examples = await collectExamples(service.routes, service.origin, key)
  write('examples.json', examples)
  write('../openapi.json', openApiDocument(service.routes, examples))
  await service.close()
}

const dataDir = mkdtempSync(join(tmpdir(), 'openapi-'))
try {
  await main(dataDir)
} catch (error) {
  note(failureText(error))
  process.exitCode = EXIT_USAGE
} finally {
  rmSync(dataDir, { recursive: true, force: true })
}
