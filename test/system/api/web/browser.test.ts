/** The page in a real browser: it loads without errors, filters work, and it is accessible. */
import axe from 'axe-core'
import { chromium, type Browser, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { rankingsSchema, type Api } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { findProgram } from '../../../support/programs.ts'
import { startSampleApi } from '../../../support/sample-api.ts'

const program = findProgram('chromium')
const { source: AXE } = axe

const violations = z.array(
  z.object({ id: z.string(), impact: z.string().nullable(), nodes: z.array(z.object({ html: z.string() })) }),
)

describe.runIf(program !== undefined)('in Chromium', () => {
  const folders = new TemporaryFolders()
  let api: Api
  let browser: Browser

  beforeAll(async () => {
    api = await startSampleApi(folders.make())
    browser = await chromium.launch({ executablePath: program ?? '', args: ['--no-sandbox'] })
  })

  afterAll(async () => {
    await browser.close()
    await api.close()
    folders.removeAll()
  })

  /** A page that records errors; every request to another host fails and is an error. */
  async function open(path: string, options: Parameters<Browser['newContext']>[0] = {}) {
    const context = await browser.newContext(options)
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
      if (message.type() === 'error') faults.push(message.text())
    })
    page.on('pageerror', (error) => faults.push(error.message))
    await page.goto(`${api.origin}${path}`)
    return { page, faults, close: () => context.close() }
  }

  async function names(page: Page): Promise<string[]> {
    return await page.locator('tbody .name').allTextContents()
  }

  it('loads without errors, from this host alone', async () => {
    const { page, faults, close } = await open('/')
    expect(await names(page)).toHaveLength(50)
    expect(await page.getByRole('img', { name: /Tokens over time/ }).isVisible()).toBe(true)
    expect(faults).toEqual([])
    await close()
  })

  it('filters by click, and the address can be shared', async () => {
    const { page, close } = await open('/')
    await page.getByRole('link', { name: 'trending', exact: true }).click()
    await page.getByRole('link', { name: 'coding', exact: true }).click()
    await page.getByRole('link', { name: 'ide-extension', exact: true }).click()
    const shown = await names(page)
    expect(page.url()).toContain('sort=trending&category=coding&subcategory=ide-extension')
    const again = await open(new URL(page.url()).search.replace(/^/, '/'))
    expect(await names(again.page)).toEqual(shown)
    await Promise.all([close(), again.close()])
  })

  it('is complete without a script', async () => {
    const { page, faults, close } = await open('/?category=coding', { javaScriptEnabled: false })
    expect((await names(page)).length).toBeGreaterThan(10)
    await page.getByRole('button', { name: 'Show' }).click()
    expect(page.url()).toContain('as_of=2026-09-01T02%3A00%3A00Z')
    expect(faults).toEqual([])
    await close()
  })

  it('adds copy buttons if scripts run', async () => {
    const { page, close } = await open('/', { permissions: ['clipboard-write', 'clipboard-read'] })
    await page.locator('pre').filter({ hasText: 'Source: App Rankings' }).getByRole('button').click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toContain('Source: App Rankings')
    await close()
  })

  it('highlights the part of the chart under the pointer in the legend', async () => {
    const { page, close } = await open('/')
    const lit = async () =>
      z
        .array(z.string())
        .parse(
          await page.evaluate(
            "[...document.querySelectorAll('.chart .lit')].map((bar) => bar.getAttribute('class'))",
          ),
        )
    await page.locator('.legend').getByText('all others').hover()
    expect(new Set(await lit())).toEqual(new Set(['band band-others lit']))
    await page.getByRole('heading').first().hover()
    expect(await lit()).toEqual([])
    await close()
  })

  it('shows the figures of a day by hover, tap and keyboard, and otherwise of the whole chart', async () => {
    const days = ['2026-08-07', '2026-08-06'] as const
    const { page, close } = await open('/')
    const figures = () => page.locator('.readout').innerText()
    const whole = await figures()
    expect(whole).toContain('Tokens of the whole chart')
    await page.locator('.wide .fields rect').nth(5).hover()
    expect(await figures()).toContain(days[0])
    expect(await figures()).toMatch(/Hermes Agent 1\.5T[^]*all others 1\.04T/)
    await page.mouse.move(2, 2)
    expect(await figures()).toBe(whole)
    await page.getByRole('slider').focus()
    await page.keyboard.press('ArrowLeft')
    expect(await page.getByRole('slider').getAttribute('aria-valuetext')).toMatch(
      new RegExp(`^${days[1]}, .*Hermes Agent [\\d.]+T`),
    )
    await close()
    const phone = await open('/', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true })
    await phone.page.locator('.narrow .fields rect').nth(5).tap()
    expect(await phone.page.locator('.readout').innerText()).toContain(days[0])
    const letters = z
      .number()
      .parse(
        await phone.page.evaluate("document.querySelector('.narrow .tick').getBoundingClientRect().height"),
      )
    expect(letters).toBeGreaterThan(11)
    await phone.close()
  })

  it('copies exact figures, but no short or spoken forms', async () => {
    const { page, close } = await open('/?days=7&limit=1')
    const copied = await page.evaluate(`(() => {
      getSelection().selectAllChildren(document.querySelector('#ranking tbody'))
      return getSelection().toString()
    })()`)
    expect(String(copied).trim()).toMatch(/^1\t0\tHermes Agent\s+[\d,]{15,}\t\d+\.\d%\t[\d,]+$/)
    await close()
  })

  it('copies over plain http, although browsers offer scripts no clipboard there', async () => {
    const { page, close } = await open('/')
    await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    await page.getByRole('button', { name: 'Copy' }).first().click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    await close()
  })

  it('keeps the head of the table in sight', async () => {
    const { page, close } = await open('/', { viewport: { width: 1280, height: 900 } })
    await page.locator('#ranking tbody tr').nth(30).scrollIntoViewIfNeeded()
    const top = await page.evaluate("document.querySelector('#ranking thead th').getBoundingClientRect().top")
    expect(top).toBe(0)
    await close()
  })

  it.each([
    { width: 640, height: 450 },
    { width: 390, height: 844 },
  ])('covers no focused element: %o', async (viewport) => {
    const { page, close } = await open('/', { viewport })
    const covered = z.array(z.string()).parse(
      await page.evaluate(`(async () => {
        const covered = []
        for (const element of document.querySelectorAll('main a, main button, main input, main select, main [tabindex]')) {
          element.focus()
          if (document.activeElement !== element) continue
          await new Promise(requestAnimationFrame)
          const { top, bottom, left, right } = element.getBoundingClientRect()
          const footer = document.querySelector('footer').getBoundingClientRect()
          const seen = Math.min(bottom, footer.top) - Math.max(top, 0)
          if (seen <= 0) covered.push(element.outerHTML.slice(0, 100))
        }
        return covered
      })()`),
    )
    expect(covered).toEqual([])
    await close()
  })

  it('is navigable by keyboard, the ranking first', async () => {
    const { page, close } = await open('/')
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the ranking')
    await close()
  })

  it('stays on the page while a snapshot is chosen, until the button is pressed', async () => {
    const { page, close } = await open('/')
    const isSent = await page.evaluate(`(() => {
      let sent = false
      document.querySelector('.picker').addEventListener('submit', () => (sent = true))
      document.querySelector('.picker select').dispatchEvent(new Event('change'))
      return sent
    })()`)
    expect(isSent).toBe(false)
    await page.getByRole('button', { name: 'Show' }).click()
    await page.waitForURL(/as_of=/)
    await close()
  })

  it('covers no row with its footer when printed, and prints the colours of the legend', async () => {
    const { page, close } = await open('/')
    await page.emulateMedia({ media: 'print' })
    const style = (selector: string, property: string) =>
      page.evaluate(`getComputedStyle(document.querySelector('${selector}')).getPropertyValue('${property}')`)
    expect(await style('footer', 'position')).toBe('static')
    expect(await style('.legend .key', 'print-color-adjust')).toBe('exact')
    await close()
  })

  it('breaks a name without spaces in the legend of a narrow page', async () => {
    const { page, close } = await open('/', { viewport: { width: 360, height: 740 } })
    await page.evaluate("document.querySelector('.legend bdi').textContent = 'x'.repeat(80)")
    expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
    await close()
  })

  it('the reference at /docs loads from this host alone, and lists the paths of every operation', async () => {
    const { page, faults, close } = await open('/docs')
    await page.locator('.nav-bar-path').first().waitFor()
    const listed = await page.locator('.nav-bar-path').allTextContents()
    const { paths } = z
      .object({ paths: z.record(z.string(), z.unknown()) })
      .parse(await (await fetch(`${api.origin}/api/v1/openapi.json`)).json())
    for (const path of Object.keys(paths)) {
      expect(
        listed.some((text) => text.replaceAll(/\s/g, '').endsWith(path)),
        path,
      ).toBe(true)
    }
    await page.getByRole('link', { name: 'App rankings' }).first().click()
    await page.getByRole('heading', { name: 'App rankings' }).waitFor()
    expect(faults).toEqual([])
    await close()
  })

  it.each(['light', 'dark'] as const)('the reference is readable in the %s theme', async (colorScheme) => {
    const { page, close } = await open('/docs', { colorScheme })
    await page.evaluate(AXE)
    for (const [path, heading] of [
      ['/app-rankings', 'The top public apps by token usage inside a date window'],
      ['/scim/sync-jobs/{id}', 'sync job'],
    ] as const) {
      await page.locator('.nav-bar-path').filter({ hasText: path }).first().click()
      await page.getByRole('heading', { name: heading }).first().waitFor()
      const found = await page.evaluate('axe.run().then((result) => result.violations)')
      expect(violations.parse(found), path).toEqual([])
    }
    expect(await page.getByText('date-time┃null').count()).toBeGreaterThan(0)
    const fonts = await page.evaluate(`(() => {
      const inside = document.querySelector('openapi-explorer').shadowRoot
      return ['main', '.mono-font'].map((part) => getComputedStyle(inside.querySelector(part)).fontFamily)
    })()`)
    expect(fonts).toEqual([expect.stringContaining('system-ui'), expect.stringContaining('monospace')])
    await close()
  })

  it.each([
    ['/', 'none'],
    ['/', 'active'],
    ['/?sort=trending', 'active'],
    ['/apps?q=co', 'none'],
    ['/method', 'none'],
    ['/models', 'none'],
    ['/nowhere', 'none'],
  ] as const)(
    '%s has no accessibility fault with forced colours %s, also unfolded',
    async (path, forcedColors) => {
      const { page, close } = await open(path, { forcedColors, viewport: { width: 390, height: 844 } })
      for (const each of await page.locator('summary').all()) await each.click()
      await page.evaluate(AXE)
      const found = violations.parse(await page.evaluate('axe.run().then((result) => result.violations)'))
      expect(found).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
      await close()
    },
  )

  it('the page of an app and a comparison have no accessibility fault', async () => {
    const rows = rankingsSchema.parse(await (await fetch(`${api.origin}/rankings.json?limit=3`)).json())
    const ids = rows.data.map(({ app_id }) => app_id)
    for (const path of [`/apps/${ids[0]}`, `/compare?apps=${ids.join(',')}&scale=log`]) {
      const { page, faults, close } = await open(path, { colorScheme: 'dark' })
      await page.evaluate(AXE)
      const found = violations.parse(await page.evaluate('axe.run().then((result) => result.violations)'))
      expect(found, path).toEqual([])
      expect(faults).toEqual([])
      await close()
    }
  })

  it('prints no button, every column of the table, and the whole citation', async () => {
    // A sheet of A4 between the usual margins.
    const { page, close } = await open('/?sort=trending', { viewport: { width: 718, height: 1000 } })
    await page.emulateMedia({ media: 'print' })
    expect(
      await page.locator('button, select, input[type=range], details').filter({ visible: true }).count(),
    ).toBe(0)
    const cut = await page.evaluate(
      "[...document.querySelectorAll('pre')].filter((block) => block.scrollWidth > block.clientWidth).length",
    )
    expect(cut).toBe(0)
    expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
    await close()
  })

  it.each([
    ['light, wide', { colorScheme: 'light', viewport: { width: 1280, height: 900 } }],
    ['dark, wide', { colorScheme: 'dark', viewport: { width: 1280, height: 900 } }],
    ['dark, phone', { colorScheme: 'dark', viewport: { width: 360, height: 740 } }],
  ] as const)('has no accessibility fault: %s', async (_name, options) => {
    const { page, close } = await open('/?category=coding&days=7', options)
    // Evaluated through the browser's protocol, which the page's content security policy does not restrict.
    await page.evaluate(AXE)
    const found = violations.parse(await page.evaluate('axe.run().then((result) => result.violations)'))
    expect(found).toEqual([])
    // Only the table may scroll sideways, never the page.
    expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
    await close()
  })
})
