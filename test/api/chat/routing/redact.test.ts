import { expect, it } from 'vitest'
import { redact } from '../../../../api/chat/routing/redact.ts'

const HEADERS = { authorization: 'Bearer plain-secret', 'api-key': 'another one' }

it.each([
  ['the key of the provider', 'Wrong key plain-secret given', 'Wrong key [key] given'],
  ['a header of the provider', 'Wrong key another one given', 'Wrong key [key] given'],
  [
    'a key with a prefix that is known',
    'Incorrect API key provided: sk-proj-abcDEF.',
    'Incorrect API key provided: [key]',
  ],
  [
    'a key that is partly starred',
    'Incorrect API key provided: xa***Zz',
    'Incorrect API key provided: [key]',
  ],
  ['a bearer token', 'Bad header: Bearer abc.def', 'Bad header: [key]'],
  [
    'a long run of letters and digits',
    'No such project: 0123456789abcdef0123456789abcdef',
    'No such project: [key]',
  ],
])('%s is removed from the log', (_name, message, clean) => {
  expect(redact(message, HEADERS)).toBe(clean)
})

it('words and short names stay, and a long message is cut', () => {
  const message = "Unsupported parameter: 'max_completion_tokens' of llama-3.3-70b"
  expect(redact(message, HEADERS)).toBe(message)
  expect(redact('word '.repeat(100), HEADERS)).toHaveLength(201)
})
