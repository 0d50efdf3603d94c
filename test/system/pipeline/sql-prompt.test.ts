/** `npm run sql` on a terminal. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runAt } from '../../support/pipeline/in-process.ts'
import { TemporaryFolders, writeRaw } from '../../support/pipeline/nightly.ts'
import { HAS_TERMINAL, openTerminal } from '../../support/terminal.ts'

const folders = new TemporaryFolders()
const dataDir = folders.make()
afterAll(() => folders.removeAll())

beforeAll(async () => {
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  const rows = 'ts,app_id,prompt_tokens,completion_tokens\n2026-01-06,1,5,1\n'
  writeRaw(dataDir, 'usage/date=2026-01-06/rows.csv', rows)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
})

/** The prompt on a terminal. */
function openPrompt() {
  const command = `'${process.execPath}' pipeline/sql-prompt.ts`
  return openTerminal(command, { DATA_DIR: dataDir })
}

describe.skipIf(!HAS_TERMINAL)('npm run sql on a terminal', () => {
  const CTRL_C = '\u0003'
  const PROMPT = /sql> /

  it('Ctrl-C clears a half-typed statement, stops a running one, and leaves the prompt', async () => {
    using terminal = openPrompt()
    await terminal.seen(PROMPT)
    terminal.type('SELECT half,\r')
    await terminal.seen(/-> /)
    terminal.type('typed')
    await terminal.seen(/typed/)
    terminal.type(CTRL_C)
    await terminal.seen(PROMPT)
    terminal.type('SELECT 6 * 7 AS answer;\r')
    expect(await terminal.seen(/\(1 row\)[^]*sql> /)).toMatch(/answer\s+------\s+42\s/)
    terminal.type('SELECT count(*) FROM range(1000000000000);\r')
    await terminal.seen(/;\s*\n/)
    terminal.type(CTRL_C)
    await terminal.seen(/Interrupted[^]*sql> /)
    terminal.type(CTRL_C)
    expect(await terminal.ended).toEqual([0, null])
  })

  it('shows the first thousand rows of a larger result, with a message', async () => {
    using terminal = openPrompt()
    await terminal.seen(PROMPT)
    terminal.type('FROM range(1000);\r')
    expect(await terminal.seen(/rows\)[^]*sql> /)).not.toContain('first')
    terminal.type('FROM range(1001);\r')
    expect(await terminal.seen(/rows\)[^]*sql> /)).toMatch(/\(1000 rows\)\s+These are the first 1000 rows/)
    terminal.type('exit\r')
    expect(await terminal.ended).toEqual([0, null])
  })
})
