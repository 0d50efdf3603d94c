import { globSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** Tests of stored data: `npm test` runs them on SQLite, `npm run test:system` on PostgreSQL. */
const ofStores = globSync('test/api/**/*.test.ts').filter((file) =>
  readFileSync(file, 'utf8').includes('stores.kinds'),
)

export default defineConfig({
  test: {
    // More than there are processors: some tests wait for a program or a timer.
    maxWorkers: availableParallelism() + 2,
    // Tests start processes and databases of their own; a busy machine may be slow, never wrong. These end what hangs.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    env: {
      // A zone far from UTC on purpose: every date of the product is UTC, so none may change.
      TZ: 'Pacific/Kiritimati',
      DATABASE_URL: '',
      // Hundreds of processes are started, and compiling takes half of a start.
      NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/compile', import.meta.url)),
    },
    projects: [
      {
        extends: true,
        test: {
          name: 'test',
          include: ['test/**/*.test.ts'],
          exclude: ['test/system/**'],
          // On Linux DuckDB takes its number of threads from here. Over a few rows a second one costs a fifth more than it
          // brings; the system tests leave it every processor.
          env: { SLURM_CPUS_ON_NODE: '1' },
          // Files share a worker's modules, so each leaves nothing behind; importing takes as long as the tests.
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'system',
          include: ['test/system/**/*.test.ts', ...ofStores],
          env: { TEST_STORE: 'PostgreSQL' },
        },
      },
    ],
  },
})
