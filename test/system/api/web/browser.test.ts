/** CONTRACT 4.6: the pages in a real browser: chart, ticking, keyboard, sizes, accessibility, policy. */
import axe from 'axe-core'
import { chromium, type Browser, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startSampleApi, until, type Api } from '../../../support/api.ts'
import { makeFolder } from '../../../support/folders.ts'
import { findProgram } from '../../../support/programs.ts'

const program = findProgram('chromium')
const { source: AXE } = axe

/** Where the first screen has what. */
type Geometry = {
  readonly firstRow: number
  readonly rows: number
  readonly chartEnd: number
  readonly scrolls: boolean
}

const CHART = "Chart.getChart(document.querySelector('canvas'))"

const LAPTOPS = ['1280x800', '1366x768', '1440x900', '1920x1080']
const PHONES = ['360x740', '390x844']

function sizeOf(text: string) {
  const [width = 0, height = 0] = text.split('x').map(Number)
  return { width, height }
}

describe.runIf(program !== undefined)('in Chromium', () => {
  let api: Api
  let browser: Browser

  beforeAll(async () => {
    api = await startSampleApi(makeFolder())
    browser = await chromium.launch({ executablePath: program ?? '', args: ['--no-sandbox'] })
  })

  afterAll(() => browser.close())

  /** A page once its chart is drawn. Until its end it must have no error, breach of the policy or request to another host. */
  async function open(path: string, options: Parameters<Browser['newContext']>[0] = {}) {
    const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
    const faults: string[] = []
    await context.route(
      (url) => url.origin !== api.origin,
      (route) => {
        faults.push(`asked another host: ${route.request().url()}`)
        return route.abort()
      },
    )
    const page = await context.newPage()
    page.on('console', (message) => {
      // Chromium logs the status of a page that refuses its address.
      const isRefusal = message.text().includes('status of 400')
      if (message.type() === 'error' && !isRefusal) faults.push(message.text())
    })
    page.on('pageerror', (error) => faults.push(error.message))
    await page.goto(`${api.origin}${path}`, { waitUntil: 'networkidle' })
    const close = async () => {
      await context.close()
      expect(faults).toEqual([])
    }
    return Object.assign(page, { [Symbol.asyncDispose]: close })
  }

  /** The names of the drawn series; the last one of the chart marks days without data. */
  const drawn = async (page: Page) => {
    const labels = await page.evaluate<string[]>(`${CHART}.data.datasets.map(({ label }) => label)`)
    return labels.slice(0, -1)
  }
  const reading = (page: Page) => page.locator('figcaption').innerText()
  const box = (page: Page, name: string) => page.getByRole('checkbox', { name: `Draw ${name}`, exact: true })

  /** The address after a choice, once its chart is drawn. */
  async function arrives(page: Page, address: Parameters<Page['waitForURL']>[0]): Promise<void> {
    await page.waitForURL(address)
    await page.waitForLoadState('networkidle')
  }

  describe.each(['light', 'dark'] as const)('in %s', (colorScheme) => {
    it.each([...LAPTOPS, ...PHONES, '768x1024'])(
      'ranking and chart share the first screen, from this host alone, at %s',
      async (size) => {
        await using page = await open('/', { viewport: sizeOf(size), colorScheme })
        expect(await drawn(page)).toHaveLength(8)
        const seen = await page.evaluate<Geometry>(`(() => {
          const rows = [...document.querySelectorAll('tbody tr')].map((row) => row.getBoundingClientRect())
          return {
            firstRow: rows[0].top,
            rows: rows.filter((row) => row.bottom <= innerHeight).length,
            chartEnd: document.querySelector('canvas').getBoundingClientRect().bottom,
            scrolls: document.documentElement.scrollWidth > innerWidth,
          }
        })()`)
        expect(seen.scrolls).toBe(false)
        expect(seen.chartEnd).toBeLessThan(sizeOf(size).height)
        expect(seen.rows).toBeGreaterThanOrEqual(LAPTOPS.includes(size) ? 18 : 6)
        if (LAPTOPS.includes(size)) expect(seen.firstRow).toBeLessThan(200)
      },
    )

    it.each([
      '/?category=coding&days=7',
      '/?sort=trending&days=7',
      '/models',
      '/apps/3067167',
      '/?q=her',
      '/method',
      '/docs',
      '/?days=2',
    ])('%s has no accessibility fault', async (path) => {
      for (const size of ['1280x800', '375x812']) {
        await using page = await open(path, { colorScheme, viewport: sizeOf(size) })
        // The reference at /docs is drawn by a script, which may go on after its last request.
        await page.getByRole('main').first().waitFor({ state: 'attached' })
        // Evaluated through the browser's protocol, which the page's content security policy does not restrict.
        await page.evaluate(AXE)
        const violations =
          'axe.run().then((result) => result.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]))'
        expect(await page.evaluate(violations)).toEqual([])
        expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
      }
    })
  })

  it('what is chosen is seen in forced colours', async () => {
    await using page = await open('/', { forcedColors: 'active' })
    const backOf = async (selector: string) =>
      await page.evaluate(`getComputedStyle(document.querySelector('${selector}')).backgroundColor`)
    expect(await backOf('nav a[aria-current]')).not.toBe(await backOf('body'))
  })

  it('on paper the ranking stands without controls', async () => {
    await using page = await open('/')
    await page.emulateMedia({ media: 'print' })
    expect(await page.locator('tbody tr').first().isVisible()).toBe(true)
    expect(await page.locator('#controls').isVisible()).toBe(false)
  })

  it.each(['1280x800', '360x740'])(
    'a day is read by pointer with all its values and their total at %s',
    async (size) => {
      await using page = await open('/', { viewport: sizeOf(size) })
      await page.locator('canvas').hover()
      const title = `${CHART}.tooltip`
      await until(async () => (await page.evaluate(`${title}.opacity`)) === 1)
      expect(await page.evaluate(`${title}.title.join()`)).toMatch(/^\w{3},? 1[4-7] Aug 2026$/)
      expect(await page.evaluate(`${title}.body.length`)).toBe(8)
      expect(await page.evaluate(`${title}.footer.join()`)).toMatch(/^Total: [\d.]+T$/)
      const isWhole = `((tip) => tip.y >= 0 && tip.y + tip.height <= tip.chart.height)(${title})`
      expect(await page.evaluate(isWhole)).toBe(true)
    },
  )

  it('one link by keyboard leads past every choice to the first row, and is hidden until then', async () => {
    await using page = await open('/', { viewport: sizeOf('390x844') })
    const skip = page.getByRole('link', { name: 'Skip to the table' })
    const hidden = await page.screenshot()
    await page.keyboard.press('Tab')
    expect(await skip.evaluate('document.activeElement.textContent')).toBe('Skip to the table')
    expect((await page.screenshot()).equals(hidden)).toBe(false)
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    expect(await page.evaluate("document.activeElement.matches('tbody tr:first-child input')")).toBe(true)
  })

  it('a day is read by keyboard into a live region, and a day without data says so', async () => {
    await using page = await open('/?days=90')
    await page.getByRole('img', { name: /^tokens per day, .*; arrow keys read a day$/ }).focus()
    await page.keyboard.press('End')
    expect(await reading(page)).toMatch(
      /31 Aug 2026, .*\u2068all others\u2069: [\d.]+T.*\u2068Hermes Agent\u2069: [\d.]+T, Total: [\d.]+T$/,
    )
    await page.keyboard.press('ArrowLeft')
    expect(await reading(page)).toContain('30 Aug 2026')
    await page.keyboard.press('Home')
    expect(await reading(page)).toMatch(/3 Jun 2026 \(missing\), *no data$/)
    await page.keyboard.press('Escape')
    expect(await reading(page)).toBe('')
  })

  it('what is ticked before the chart is there is drawn', async () => {
    const { promise: ticked, resolve: release } = Promise.withResolvers<void>()
    await using page = await open('/method')
    await page.route('**/chart.js?*', async (route) => {
      await ticked
      await route.continue()
    })
    await page.goto(`${api.origin}/?limit=9`, { waitUntil: 'commit' })
    await box(page, 'DeepSeek Harness').check()
    release()
    await page.waitForURL(/apps=/)
    expect(await drawn(page)).toContain('DeepSeek Harness')
  })

  it('ticking is comparing: the address has what is drawn, also for the back button and another visitor', async () => {
    await using page = await open('/')
    await box(page, 'Framer').check()
    // The chart has seven colours, so the last of the first seven makes room.
    expect(await box(page, 'OpenClaw').isChecked()).toBe(false)
    expect(await reading(page)).toBe('Framer is drawn instead of OpenClaw')
    expect(await drawn(page)).toContain('Framer')
    await box(page, 'Hermes Agent').uncheck()
    const shared = page.url()
    const shown = await drawn(page)
    await using another = await open(new URL(shared).search.replace(/^/, '/'))
    expect((await drawn(another)).toSorted()).toEqual(shown.toSorted())
    await page.goBack()
    expect(await box(page, 'Hermes Agent').isChecked()).toBe(true)
    await page.goBack()
    expect(await box(page, 'OpenClaw').isChecked()).toBe(true)
    expect(new URL(page.url()).search).toBe('')
  })

  it('with nothing drawn a tick draws the first, at an address that the server shows', async () => {
    await using page = await open('/?apps=none')
    expect(await drawn(page)).toEqual(['all others'])
    await box(page, 'Framer').check()
    await page.getByRole('link', { name: '7 d', exact: true }).click()
    await arrives(page, /days=7/)
    expect(await drawn(page)).toEqual(['Framer', 'all others'])
  })

  it('an app that the snapshot lacks, or that an address names twice, takes no place in the chart', async () => {
    const named = '999,3067167,3067167,2627404,2262242,4137556,190604'
    await using page = await open(`/?apps=${named}`)
    await box(page, 'Framer').check()
    await box(page, 'pi').check()
    expect(await reading(page)).toBe('')
    const names = 'Hermes Agent, Claude Code, Kilo Code, Zazen (Freebuff fork), Cline, pi, Framer, all others'
    expect((await drawn(page)).join(', ')).toBe(names)
  })

  it('the choice of apps and of the chart stays while window and category change', async () => {
    await using page = await open('/')
    await page.getByRole('link', { name: 'Lines' }).click()
    await arrives(page, /chart=lines/)
    await box(page, 'Framer').check()
    await page.getByRole('link', { name: '7 d', exact: true }).click()
    await page.waitForURL(/days=7/)
    await page.getByLabel('Category').selectOption('cli-agent')
    await arrives(page, /category=cli-agent/)
    expect(new URL(page.url()).searchParams.get('chart')).toBe('lines')
    expect(await drawn(page)).toContain('Framer')
    expect(await page.getByRole('link', { name: 'Lines' }).getAttribute('aria-current')).toBe('true')
    // The keyboard goes on from the choice.
    expect(await page.evaluate('document.activeElement.name')).toBe('category')
    await page.goBack()
    expect(await page.getByLabel('Category').inputValue()).toBe('')
  })

  it('a pair of dates is a window', async () => {
    await using page = await open('/')
    await page.getByLabel('First day').fill('2026-08-09')
    await page.getByRole('button', { name: 'Show' }).first().click()
    await page.waitForURL(/start_date=2026-08-09&end_date=2026-08-31/)
    expect(await page.locator('#list p').first().innerText()).toContain('2026-08-09 to 2026-08-31')
    // The sample begins on 2026-07-21.
    const uncertain = 'The change of rank is uncertain: the data lacks 4 of the 23 days before.'
    expect(await page.locator('#list').innerText()).toContain(uncertain)
  })

  it('the search is one key away, and adds to the chart', async () => {
    await using page = await open('/?limit=10')
    const search = async (text: string) => {
      await page.keyboard.press('/')
      await page.getByLabel('Find by name').fill(text)
      await page.keyboard.press('Enter')
      await arrives(page, (url) => (url.searchParams.get('q') ?? '') === text)
    }
    await search('lemon')
    await box(page, 'Lemonade').check()
    expect(await drawn(page)).toContain('Lemonade')
    await search('zzzz')
    await page.getByText('Nothing is in this list').waitFor()
    expect(await drawn(page)).toContain('Lemonade')
    await search('')
    expect(await page.locator('tbody tr').count()).toBe(11)
    expect(await box(page, 'Lemonade').isChecked()).toBe(true)
  })

  it('without a script the ranking, its choices and the search work', async () => {
    await using page = await open('/', { javaScriptEnabled: false })
    expect(await page.locator('tbody tr').count()).toBeGreaterThan(10)
    // The table has the room of the chart.
    expect((await page.locator('table').boundingBox())?.width).toBeGreaterThan(1000)
    await page.getByLabel('Category').selectOption('coding')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByRole('link', { name: 'Trending' }).click()
    expect(page.url()).toContain('category=coding&sort=trending')
    await page.getByLabel('Find by name').fill('her')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Hermes Agent' }).click()
    expect(await page.locator('h1').innerText()).toBe('Hermes Agent')
  })

  it('the page of an app draws its prompt and completion tokens', async () => {
    await using page = await open('/apps/3067167')
    expect(await drawn(page)).toEqual(['Prompt tokens', 'Completion tokens'])
  })

  it('without chart.js the page says that there is no chart, and everything else works', async () => {
    const context = await browser.newContext()
    await context.route('**/chart.js?*', (route) => route.abort())
    const page = await context.newPage()
    await page.goto(`${api.origin}/?days=7`)
    await page.getByText(/The chart cannot be drawn .*: reload the page/).waitFor()
    expect(await page.locator('tbody tr').count()).toBe(50)
    await page.getByLabel('Category').selectOption('cli-agent')
    await page.waitForURL(/category=cli-agent/)
    await page.getByLabel('Category').blur()
    await page.keyboard.press('/')
    await page.keyboard.type('her')
    await page.keyboard.press('Enter')
    await page.waitForURL(/q=her/)
    await page.getByRole('link', { name: 'Trending' }).click()
    await page.waitForURL(/sort=trending/)
    expect(new URL(page.url()).searchParams.get('category')).toBe('cli-agent')
    await context.close()
  })

  it('the first view takes less than 100 KB', async () => {
    await using page = await open('/')
    const bytes = await page.evaluate<number[]>(
      "['navigation', 'resource'].flatMap((type) => performance.getEntriesByType(type)).map((entry) => entry.transferSize)",
    )
    expect(bytes.length).toBeGreaterThanOrEqual(4)
    expect(bytes.reduce((sum, each) => sum + each, 0)).toBeLessThan(100_000)
  })
})
