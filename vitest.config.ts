import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Tests start processes and databases of their own; a busy machine may be slow, never wrong.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // A zone far from UTC on purpose: every date of the product is UTC, so none may change.
    env: { TZ: 'Pacific/Kiritimati', DATABASE_URL: '' },
  },
})
