import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    // More than there are processors: some tests wait for a program or a timer.
    maxWorkers: availableParallelism() + 2,
    // These limits only end hung tests; a long one has its own, from test/support/long.ts.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    setupFiles: ['test/support/setup.ts'],
    env: {
      // A zone far from UTC, since every date of the product must be UTC.
      TZ: 'Pacific/Kiritimati',
      DATABASE_URL: '',
      // Tests start hundreds of processes, and compiling takes half of a start.
      NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/compile', import.meta.url)),
    },
    projects: [
      {
        extends: true,
        test: {
          name: 'test',
          include: ['test/**/*.test.ts'],
          exclude: ['test/system/**'],
          // On Linux DuckDB reads its number of threads from here. For a few rows a second thread costs more than it saves;
          // the system tests use every processor.
          env: { SLURM_CPUS_ON_NODE: '1' },
          // Files share a worker's modules, so each must clean up; importing takes as long as the tests.
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'system',
          // Tests of stored data run twice: on SQLite in `npm test`, on PostgreSQL here.
          include: ['test/system/**/*.test.ts', 'test/**/*.stores.test.ts'],
          env: { TEST_STORE: 'PostgreSQL' },
        },
      },
    ],
  },
})
