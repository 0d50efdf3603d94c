import { describe, expect, it } from 'vitest'
import { listOf, manyGroups, startDirectory } from '../../../support/scim/faulty-directory.ts'
import { failureOf, idsOf, listQueries, ofList, pullFrom } from '../../../support/scim/pull.ts'

describe('a list by index', () => {
  it.each([0, 1, 9, 10, 11, 35])('reads %i groups and detects that the list is complete', async (count) => {
    await using directory = await startDirectory(manyGroups(count))
    const { ids, complete } = await pullFrom(directory)
    expect(ids).toEqual(idsOf(directory.groups))
    expect(complete).toBe(true)
  })

  it('continues after the received rows if pages are smaller than requested', async () => {
    await using directory = await startDirectory(manyGroups(25), { maxPage: 4 })
    expect((await pullFrom(directory)).ids).toHaveLength(25)
    expect(listQueries(directory).map((query) => query.get('startIndex'))).toEqual([
      '1',
      '5',
      '9',
      '13',
      '17',
      '21',
      '25',
    ])
  })

  it.each(['resources', 'RESOURCES'])('reads a list under the key %s', async (key) => {
    const groups = manyGroups(3)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) => {
        const { Resources, ...rest } = listOf(groups, query)
        return { body: { ...rest, [key]: Resources } }
      }),
    })
    expect((await pullFrom(directory)).ids).toHaveLength(3)
  })

  it('accepts an empty list without Resources', async () => {
    await using directory = await startDirectory([], { quirk: ofList(() => ({ body: { totalResults: 0 } })) })
    expect(await pullFrom(directory)).toMatchObject({ ids: [], complete: true })
  })

  it('goes on past a total that counts the page', async () => {
    const groups = manyGroups(25)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) => {
        const list = listOf(groups, query)
        return { body: { ...list, totalResults: list.Resources.length } }
      }),
    })
    expect((await pullFrom(directory)).ids).toHaveLength(25)
  })

  it('ends if a page past the end repeats the first page', async () => {
    const groups = manyGroups(20)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) =>
        Number(query.get('startIndex')) > 20
          ? { body: listOf(groups, new URLSearchParams({ startIndex: '1', count: '10' })) }
          : undefined,
      ),
    })
    expect((await pullFrom(directory)).ids).toHaveLength(20)
  })

  it('fails if every page is the first page', async () => {
    const groups = manyGroups(30)
    await using directory = await startDirectory(groups, {
      quirk: ofList(() => ({ body: listOf(groups, new URLSearchParams({ count: '10' })) })),
    })
    expect(await failureOf(directory)).toBe('directory_incomplete')
  })

  it('fails if two walks return fewer groups than the directory counts', async () => {
    const groups = manyGroups(5)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) => ({ body: { ...listOf(groups, query), totalResults: 6 } })),
    })
    expect(await failureOf(directory)).toBe('directory_incomplete')
    expect(listQueries(directory).filter((query) => query.get('startIndex') === '1')).toHaveLength(2)
  })

  it('reads the list again if groups were deleted meanwhile, and misses none', async () => {
    const groups = manyGroups(25)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ before }) => {
        // Between the first page and the second, which now begins two groups later.
        if (before === 1) groups.splice(0, 2)
        return undefined
      }),
    })
    const { ids } = await pullFrom(directory)
    for (const id of idsOf(groups)) expect(ids).toContain(id)
  })

  it('uses the total if only the first page has it', async () => {
    const groups = manyGroups(15)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query, before }) => {
        const { totalResults, ...list } = listOf(groups, query)
        return { body: before === 0 ? { ...list, totalResults } : list }
      }),
    })
    expect(await pullFrom(directory)).toMatchObject({ ids: idsOf(groups), complete: true })
  })

  it('counts nothing as deleted without a total', async () => {
    const groups = manyGroups(15)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) => {
        const { totalResults: _dropped, ...list } = listOf(groups, query)
        return { body: list }
      }),
    })
    const { ids, complete } = await pullFrom(directory)
    expect(ids).toHaveLength(15)
    expect(complete).toBe(false)
  })

  it.each([400, 501])('requests without paging after a %i for paging', async (status) => {
    const groups = manyGroups(15)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) =>
        query.has('startIndex') && query.get('startIndex') !== '1'
          ? { status, body: {} }
          : { body: listOf(groups, new URLSearchParams({ count: query.has('count') ? '10' : '1000' })) },
      ),
    })
    expect(await pullFrom(directory)).toMatchObject({ ids: idsOf(groups), complete: true })
  })

  it.each([
    ['tooMany', 'GET /Groups: status 400 (tooMany)'],
    ['\u001b[2J', 'GET /Groups: status 400'],
    [undefined, 'GET /Groups: status 400'],
  ])('names the scimType of an error: %j', async (scimType, message) => {
    await using directory = await startDirectory([], {
      quirk: ofList(() => ({ status: 400, body: { scimType } })),
    })
    await expect(pullFrom(directory)).rejects.toMatchObject({ message })
  })

  it('takes a 404 as the end once the total is reached, and not before', async () => {
    const groups = manyGroups(15)
    let known = groups.length
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) =>
        Number(query.get('startIndex')) > known ? { status: 404, body: {} } : undefined,
      ),
    })
    expect(await pullFrom(directory)).toMatchObject({ ids: idsOf(groups), complete: true })
    known = 10
    await expect(pullFrom(directory)).rejects.toThrow('status 404')
  })

  it('requests without excludedAttributes if they are rejected', async () => {
    await using directory = await startDirectory(manyGroups(15), {
      quirk: ofList(({ query }) => (query.has('excludedAttributes') ? { status: 400, body: {} } : undefined)),
    })
    const { ids, groups } = await pullFrom(directory, { members: 'off' })
    expect(ids).toHaveLength(15)
    expect([...groups.values()].every(({ members }) => members === null)).toBe(true)
  })
})

describe('a list by cursor', () => {
  const cursor = true

  it('follows the cursors to the end', async () => {
    await using directory = await startDirectory(manyGroups(25), { cursor })
    expect(await pullFrom(directory)).toMatchObject({ ids: idsOf(directory.groups), complete: true })
    expect(listQueries(directory).map((query) => [query.get('cursor'), query.has('startIndex')])).toEqual([
      ['', false],
      ['10', false],
      ['20', false],
    ])
  })

  it('is complete without a total', async () => {
    const groups = manyGroups(25)
    await using directory = await startDirectory(groups, {
      cursor,
      quirk: ofList(({ query }) => {
        const { totalResults: _dropped, ...list } = listOf(groups, query)
        return { body: list }
      }),
    })
    expect(await pullFrom(directory)).toMatchObject({ ids: idsOf(groups), complete: true })
  })

  it('follows an unrequested cursor', async () => {
    const groups = manyGroups(25)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) =>
        query.has('cursor')
          ? undefined
          : { body: listOf(groups, new URLSearchParams({ cursor: '', count: '10' })) },
      ),
    })
    expect(await pullFrom(directory)).toMatchObject({ ids: idsOf(groups), complete: true })
  })

  it('detects announced cursors under names in any case', async () => {
    await using directory = await startDirectory(manyGroups(3), {
      quirk: ({ path }) =>
        path === '/ServiceProviderConfig' ? { body: { Pagination: { Cursor: true } } } : undefined,
    })
    await pullFrom(directory)
    expect(listQueries(directory)[0]?.get('cursor')).toBe('')
  })

  it('follows cursors that are numbers', async () => {
    const groups = manyGroups(25)
    await using directory = await startDirectory(groups, {
      cursor,
      quirk: ofList(({ query }) => {
        const { totalResults: _dropped, nextCursor, ...list } = listOf(groups, query)
        return { body: { ...list, ...(nextCursor === undefined ? {} : { nextCursor: Number(nextCursor) }) } }
      }),
    })
    expect(await pullFrom(directory)).toMatchObject({ ids: idsOf(groups), complete: true })
  })

  it('starts again when a cursor expires', async () => {
    await using directory = await startDirectory(manyGroups(25), {
      cursor,
      quirk: ofList(({ before }) =>
        before === 1 ? { status: 400, body: { scimType: 'expiredCursor' } } : undefined,
      ),
    })
    expect((await pullFrom(directory)).ids).toHaveLength(25)
  })

  it('requests by index if every cursor expires', async () => {
    await using directory = await startDirectory(manyGroups(25), {
      cursor,
      quirk: ofList(({ query }) =>
        query.get('cursor') ? { status: 400, body: { scimType: 'expiredCursor' } } : undefined,
      ),
    })
    expect((await pullFrom(directory)).ids).toHaveLength(25)
    const first = listQueries(directory).filter(
      (query) => query.get('cursor') === '' && query.get('count') === '10',
    )
    expect(first).toHaveLength(3)
  })

  it('requests by index if announced cursors are rejected', async () => {
    await using directory = await startDirectory(manyGroups(25), {
      cursor,
      quirk: ofList(({ query }) => (query.has('cursor') ? { status: 400, body: {} } : undefined)),
    })
    expect((await pullFrom(directory)).ids).toHaveLength(25)
  })

  it('fails if cursors lead in a circle, or endlessly to nothing new', async () => {
    const groups = manyGroups(5)
    const turn = (next: (before: number) => string) =>
      ofList(({ query, before }) => ({ body: { ...listOf(groups, query), nextCursor: next(before) } }))
    await using circle = await startDirectory(groups, { cursor, quirk: turn((before) => String(before % 3)) })
    expect(await failureOf(circle)).toBe('directory_incomplete')
    await using desert = await startDirectory(groups, { cursor, quirk: turn((before) => `more-${before}`) })
    expect(await failureOf(desert)).toBe('directory_incomplete')
  })
})
