/** Runs before each test file. */
import { afterAll } from 'vitest'
import { removeMade } from './folders.ts'

afterAll(removeMade)
