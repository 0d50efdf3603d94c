import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { appHeaders, readAppClaim } from '../../../../api/chat/apps/app-claim.ts'

/** A text as Node's HTTP server hands over a header that holds it in UTF-8. */
const onTheWire = (text: string) => Buffer.from(text, 'utf8').toString('latin1')

const identity = (address: string, title?: string) =>
  readAppClaim({ 'http-referer': address, ...(title === undefined ? {} : { 'x-title': title }) })?.identity

const titleOf = (title: string) =>
  readAppClaim({ 'http-referer': 'https://a.example', 'x-title': title })?.title

describe('the identity of an app', () => {
  it.each([
    ['https://app.example', 'app.example'],
    ['https://app.example/', 'app.example'],
    ['http://app.example', 'app.example'],
    ['https://www.app.example', 'app.example'],
    ['HTTPS://WWW.App.Example/', 'app.example'],
    ['https://app.example.', 'app.example'],
    ['https://www.com', 'www.com'],
    ['https://app.example:443/', 'app.example'],
    ['http://app.example:80/', 'app.example'],
    ['https://app.example:8443/', 'app.example:8443'],
    ['https://user:secret@app.example/?token=1#part', 'app.example'],
    ['  https://app.example  ', 'app.example'],
    ['https://app.example/a/b/', 'app.example/a/b'],
    ['https://app.example/A/b', 'app.example/A/b'],
    ['https://app.example/a/../b', 'app.example/b'],
    ['https://app.example//', 'app.example'],
    ['https://github.com/owner/repo', 'github.com/owner/repo'],
    ['https://bücher.example/straße', 'xn--bcher-kva.example/stra%C3%9Fe'],
    ['https://a.example/x y\tz', 'a.example/x%20yz'],
  ])('of %j is %j', (address, expected) => {
    expect(identity(onTheWire(address))).toBe(expected)
  })

  it.each([
    '',
    ' ',
    'app.example',
    'My App',
    '/path',
    'ftp://app.example',
    'file:///home/me',
    'javascript:alert(1)',
    'chrome-extension://abcdef/page.html',
    'https://',
    'https://a.example, https://b.example',
    `https://app.example/${'x'.repeat(300)}`,
  ])('does not exist for %j, even with a title', (address) => {
    expect(identity(address)).toBeUndefined()
    expect(identity(address, 'Title')).toBeUndefined()
  })

  it.each([
    'http://localhost',
    'http://localhost:3000/app',
    'http://sub.localhost:3000',
    'http://127.0.0.1:8080',
    'http://2130706433',
    'http://[::1]:3000',
    'http://192.168.1.20',
    'http://8.8.8.8',
    'http://workstation',
    'http://printer.local',
    'https://tool.corp.internal',
  ])('of the shared address %s is the title alone', (address) => {
    expect(identity(address)).toBeUndefined()
    expect(identity(address, ' ')).toBeUndefined()
    expect(identity(address, 'My Tool')).toBe('local:my tool')
  })

  it('does not exist without the address, whatever else is sent', () => {
    expect(readAppClaim({ 'x-title': 'App', 'x-app-categories': 'game' })).toBeUndefined()
    expect(readAppClaim({})).toBeUndefined()
  })

  it('has a valid form for any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.webUrl()), fc.string(), (address, title) => {
        const claim = readAppClaim({ 'http-referer': address, 'x-title': title })
        if (claim !== undefined) expect(claim.identity).toMatch(/^(local:.+|[^\s?#@/]+(\/[^\s?#]+)?)$/u)
      }),
    )
  })
})

describe('the title', () => {
  it.each([
    ['x-title', 'X'],
    ['X-Title', 'X'],
    ['x-openrouter-title', 'X'],
    ['X-Some-Service-Title', 'X'],
  ])('is read from %s', (name, title) => {
    expect(readAppClaim({ 'http-referer': 'https://a.example', [name]: title })?.title).toBe(title)
  })

  it('of the shortest header name counts, if it has a value', () => {
    const headers = { 'http-referer': 'https://a.example', 'x-b-title': 'long', 'x-title': ' ' }
    expect(readAppClaim(headers)?.title).toBe('long')
    expect(readAppClaim({ ...headers, 'x-title': 'short' })?.title).toBe('short')
    expect(readAppClaim({ ...headers, title: 'no header of ours' })?.title).toBe('long')
  })

  it.each([
    [onTheWire('Café ☕ 应用'), 'Café ☕ 应用'],
    ['Caf\u00e9', 'Café'],
    [onTheWire('e\u0301'), 'é'],
    ['  two \t words \r\n', 'two words'],
    [onTheWire('\u202Eevil\u202C \u200Bname\uFEFF'), 'evil name'],
    [onTheWire('line\u2028break\u0000'), 'line break'],
    [onTheWire('👩‍💻 dev'), '👩‍💻 dev'],
    [onTheWire('😀'.repeat(100)), '😀'.repeat(80)],
  ])('%j is %j', (sent, title) => {
    expect(titleOf(sent)).toBe(title)
  })

  it.each(['', '  ', '\t', onTheWire('\u200B\u202E'), onTheWire('\u200D \uFE0F'), onTheWire('\u3164')])(
    '%j is none',
    (sent) => {
      expect(titleOf(sent)).toBeUndefined()
    },
  )

  it('is one visible line of at most 80 characters, whatever is sent', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        for (const sent of [text, onTheWire(text)]) {
          const title = titleOf(sent)
          if (title === undefined) continue
          expect(Array.from(title).length).toBeLessThanOrEqual(80)
          expect(title).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]|^\s|\s$|\s\s/u)
          expect(title.isWellFormed()).toBe(true)
        }
      }),
    )
  })
})

it('is read from the first of several addresses and titles', () => {
  const claim = readAppClaim({
    'http-referer': ['https://a.example', 'https://b.example'],
    'x-title': ['One', 'Two'],
    'x-categories': ['game', 'legal'],
  })
  expect(claim).toEqual({ identity: 'a.example', title: 'One', subcategories: ['game', 'legal'] })
})

describe('the categories', () => {
  const tags = (value: string | string[], name = 'x-openrouter-categories') =>
    readAppClaim({ 'http-referer': 'https://a.example', [name]: value })?.subcategories

  it.each([
    ['cli-agent', ['cli-agent']],
    ['game, cli-agent', ['game', 'cli-agent']],
    ['game,,unknown, roleplay', ['game', 'roleplay']],
    ['game,game,roleplay,legal', ['game', 'roleplay']],
    ['Cli-Agent', ['cli-agent']],
    ['coding', []],
    ['', []],
  ])('of %j are %j', (value, expected) => {
    expect(tags(value)).toEqual(expected)
  })

  it('are read from a header with or without prefix, and from repeated ones', () => {
    expect(tags('game', 'x-categories')).toEqual(['game'])
    expect(tags('game', 'X-App-Categories')).toEqual(['game'])
    expect(tags(['game', 'legal'])).toEqual(['game', 'legal'])
    expect(tags('game', 'categories')).toEqual([])
  })
})

describe('appHeaders', () => {
  it('keeps only the headers that a claim is read from', () => {
    const relevant = {
      'http-referer': 'https://a.example',
      'X-Title': 'A',
      'x-some-service-title': 'Another',
      'x-app-categories': 'game',
    }
    const sent = { authorization: 'Bearer secret', title: 'none', 'x-subtitle': 'none', ...relevant }
    expect(appHeaders(sent)).toEqual(relevant)
    expect(readAppClaim(appHeaders(sent))).toEqual(readAppClaim(sent))
  })
})
