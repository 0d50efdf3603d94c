// Adds the chart to a page, which is complete without it otherwise: ticking a row draws it, and the address has the
// state.

const SLOTS = 7

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })
const find = (selector, within = document) => within.querySelector(selector)
const findAll = (selector, within = document) => [...within.querySelectorAll(selector)]
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()
const dayName = (day, parts) =>
  new Date(day).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC', ...parts })

const numbers = (values) => values.map((value) => (value === null ? null : Number(value)))
const sum = (values) => values.reduce((total, value) => total + (value ?? 0), 0)

function element(tag, properties, ...content) {
  const made = Object.assign(document.createElement(tag), properties)
  made.append(...content)
  return made
}

const figure = find('#plot')
const table = find('table[data-chosen]')
const parameter = table?.dataset.chosen
const boxes = table ? findAll('.tick input', table) : []

// Series of the chart. A slot is a colour; its app keeps it while others come and go.
let data
let slots = []
let chart
let readDay
const fresh = new Set()

const kind = () => new URLSearchParams(location.search).get('chart') ?? figure.dataset.kind

// The drawn apps or models by the address: the first of the list, if it names none.
function slotsOf(search) {
  const given = new URLSearchParams(search).get(parameter)
  const ids = given === null ? boxes.map((box) => box.value) : given === 'none' ? [] : given.split(',')
  return Array.from({ length: SLOTS }, (_, index) => ids[index])
}

function addressWith(href, ids) {
  const url = new URL(href)
  if (ids === undefined) url.searchParams.delete(parameter)
  else url.searchParams.set(parameter, ids.filter(Boolean).join(',') || 'none')
  return url.href.replaceAll('%2C', ',')
}

// What the script adds to the address, which links and forms keep.
function kept(names = [parameter, 'chart']) {
  const here = new URLSearchParams(location.search)
  return names.flatMap((name) => (here.has(name) ? [[name, here.get(name)]] : []))
}

function keepState(link, names) {
  const url = new URL(link.href)
  for (const name of names) url.searchParams.delete(name)
  for (const [name, value] of kept(names)) url.searchParams.set(name, value)
  link.href = url.href.replaceAll('%2C', ',')
}

async function load() {
  const response = await fetch(figure.dataset.source)
  if (!response.ok) throw new Error(`${figure.dataset.source} answered ${response.status}`)
  const isJson = response.headers.get('Content-Type').startsWith('application/json')
  return isJson ? readList((await response.json()).series) : readHistory(await response.text())
}

function readList(series) {
  const items = series[parameter].map(({ app_id, app_name, model_permaslug, in_list, values }) => [
    String(app_id ?? model_permaslug),
    { name: app_name ?? model_permaslug, isListed: in_list, values: numbers(values) },
  ])
  return { ...series, total: numbers(series.total), items: new Map(items) }
}

// The history of one app has no commas but those between its columns.
function readHistory(text) {
  const [, ...rows] = text
    .trim()
    .split('\n')
    .map((line) => line.split(','))
  const values = (column) => rows.map((row) => (row[5] === 'missing' ? null : Number(row[column])))
  const items = new Map([
    ['prompt', { name: 'Prompt tokens', values: values(2) }],
    ['completion', { name: 'Completion tokens', values: values(3) }],
  ])
  slots = [...items.keys()]
  return { days: rows.map(([day]) => day), coverage: rows.map((row) => row[5]), items }
}

function datasetsOf(isStacked) {
  const drawn = slots.flatMap((id, slot) => (data.items.has(id) ? [{ ...data.items.get(id), slot }] : []))
  const style = (name) => ({
    backgroundColor: colour(name),
    hoverBackgroundColor: colour(name),
    borderColor: colour(name),
    borderWidth: isStacked ? 0 : 2,
    pointRadius: data.days.length === 1 ? 3 : 0,
  })
  const sets = drawn
    .toSorted((one, other) => sum(other.values) - sum(one.values))
    .map(({ name, values, slot }) => ({ label: name, data: values, ...style(`c${slot}`) }))
  if (isStacked && data.total) {
    const listed = drawn.filter(({ isListed }) => isListed)
    const rest = data.total.map((total, day) => total && total - sum(listed.map(({ values }) => values[day])))
    if (sum(rest) > 0) sets.push({ label: 'all others', data: rest, ...style('rest') })
  }
  const gaps = { label: 'no data', data: data.coverage.map((each) => (each === 'missing' ? 1 : null)) }
  const band = { type: 'bar', yAxisID: 'gap', grouped: false, barPercentage: 1, categoryPercentage: 1 }
  return [
    ...sets,
    { ...gaps, ...band, backgroundColor: colour('hover'), hoverBackgroundColor: colour('line') },
  ]
}

const valueOf = ({ dataset, raw }) => (dataset.yAxisID === 'gap' ? 'no data' : compact.format(raw))

function tooltip(isStacked) {
  return {
    itemSort: (one, other) => (isStacked ? other.datasetIndex - one.datasetIndex : other.raw - one.raw),
    filter: ({ raw }) => raw !== null,
    callbacks: {
      title: ([{ dataIndex }]) => {
        const coverage = data.coverage[dataIndex]
        const day = dayName(data.days[dataIndex], { weekday: 'short', year: 'numeric' })
        return coverage === 'partial' || coverage === 'restated' ? `${day} (${coverage})` : day
      },
      label: (item) => ` ${item.dataset.yAxisID ? '' : `${item.dataset.label}: `}${valueOf(item)}`,
      footer: (items) => {
        const all = items.reduce((total, { dataset, raw }) => (dataset.yAxisID ? NaN : total + raw), 0)
        return isStacked && Number.isFinite(all) ? `Total: ${compact.format(all)}` : ''
      },
    },
  }
}

function options(isStacked) {
  const ticks = { color: colour('soft') }
  const year = data.days.length > 180 ? { year: '2-digit' } : {}
  return {
    animation: matchMedia('(prefers-reduced-motion: reduce)').matches ? false : { duration: 150 },
    maintainAspectRatio: false,
    interaction: { mode: 'index', intersect: false },
    datasets: {
      bar: { categoryPercentage: data.days.length > 100 ? 1 : 0.92, barPercentage: 1, maxBarThickness: 72 },
    },
    plugins: { legend: { display: false }, tooltip: tooltip(isStacked) },
    scales: {
      x: {
        stacked: isStacked,
        offset: true,
        grid: { display: false },
        ticks: {
          ...ticks,
          maxRotation: 0,
          autoSkipPadding: 16,
          callback: (index) => dayName(data.days[index], year),
        },
      },
      y: {
        stacked: isStacked,
        beginAtZero: true,
        border: { display: false },
        grid: { color: colour('line') },
        ticks: { ...ticks, maxTicksLimit: 6, callback: (value) => compact.format(value) },
      },
      gap: { display: false, min: 0, max: 1 },
    },
  }
}

/** Shows the state. Styles are read before the page is changed, so that it is laid out once. */
function show() {
  const isStacked = kind() === 'stacked'
  const datasets = datasetsOf(isStacked)
  const content = { labels: data.days, datasets }
  const config = { type: isStacked ? 'bar' : 'line', data: content, options: options(isStacked) }
  showBoxes()
  showLinks()
  showLegend(datasets, kept([parameter]).length > 0)
  const canvas = find('canvas', figure)
  const names = datasets.slice(0, -1).map(({ label }) => label)
  canvas.setAttribute('aria-label', `${figure.dataset.label}: ${names.join(', ')}. Arrow keys read a day.`)
  readDay = undefined
  chart?.destroy()
  chart = new Chart(canvas, config)
}

function showBoxes() {
  for (const box of boxes) {
    const slot = slots.indexOf(box.value)
    box.checked = slot !== -1
    box.className = slot === -1 ? '' : `c${slot}`
  }
}

function showLinks() {
  for (const link of findAll("nav [aria-label='Chart'] a")) {
    keepState(link, [parameter])
    link.ariaCurrent = link.textContent.trim().toLowerCase() === kind() ? 'true' : null
  }
  for (const link of findAll("nav [aria-label='Ranking of'] a")) keepState(link, ['chart'])
  const others = "nav [aria-label='Order'] a, nav [aria-label='Window'] a, .pages a"
  for (const link of findAll(others)) keepState(link, [parameter, 'chart'])
}

function showLegend(datasets, isChosen) {
  const items = slots.flatMap((id, slot) => {
    const item = data.items.get(id)
    if (item === undefined) return []
    const label = table
      ? element(
          'button',
          { type: 'button', title: `Remove ${item.name} from the chart`, onclick: () => toggle(id) },
          `${item.name} ×`,
        )
      : element('span', {}, item.name)
    return [element('li', { className: `c${slot}` }, label)]
  })
  if (datasets.some(({ label }) => label === 'all others'))
    items.push(element('li', {}, element('span', {}, 'all others')))
  if (isChosen) {
    const reset = () => change(addressWith(location.href, undefined))
    items.push(
      element(
        'li',
        { className: 'reset' },
        element('button', { type: 'button', onclick: reset }, 'First seven'),
      ),
    )
  }
  find('.legend', figure).replaceChildren(...items)
}

/** Goes to an address of the same list, with other series or another kind of chart. */
function change(href) {
  history.pushState(null, '', href)
  slots = slotsOf(location.search)
  show()
}

function toggle(id) {
  const next = [...slots]
  let slot = next.indexOf(id)
  if (slot === -1) {
    slot = next.indexOf(undefined)
    // The chart is full: the last one goes that the visitor did not tick, or else the one ticked first.
    if (slot === -1) slot = next.findLastIndex((each) => !fresh.has(each))
    if (slot === -1) slot = next.indexOf([...fresh][0])
    fresh.delete(next[slot])
    say(
      next[slot] === undefined
        ? ''
        : `${data.items.get(id).name} is drawn instead of ${data.items.get(next[slot]).name}`,
    )
    next[slot] = id
    fresh.add(id)
  } else {
    next[slot] = undefined
    fresh.delete(id)
    say('')
  }
  history.pushState(null, '', addressWith(location.href, next))
  slots = next
  show()
}

function say(text) {
  find('.reading', figure).textContent = text
}

const KEYS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }

function readByKeyboard(event) {
  const last = data.days.length - 1
  if (event.key === 'Escape') return showDay(undefined)
  if (!(event.key in KEYS)) return
  event.preventDefault()
  const from = readDay ?? (KEYS[event.key] > 0 ? -1 : last + 1)
  showDay(Math.min(Math.max(from + KEYS[event.key], 0), last))
}

function showDay(index) {
  readDay = index
  const active =
    index === undefined
      ? []
      : chart.data.datasets.flatMap(({ data: values }, datasetIndex) =>
          values[index] === null ? [] : [{ datasetIndex, index }],
        )
  chart.setActiveElements(active)
  chart.tooltip.setActiveElements(active, { x: 0, y: 0 })
  chart.update('none')
  const { title = [], body = [], footer = [] } = active.length === 0 ? {} : chart.tooltip
  say([...title, ...body.flatMap(({ lines }) => lines), ...footer].join(', '))
}

function drawFound(id) {
  if (slots.includes(id)) return
  if (data.items.has(id)) return toggle(id)
  location.assign(addressWith(location.href, [...slots.filter(Boolean).slice(0, SLOTS - 1), id]))
}

async function startChart() {
  if (table) slots = slotsOf(location.search)
  data = await load()
  show()
  const canvas = find('canvas', figure)
  canvas.addEventListener('keydown', readByKeyboard)
  canvas.addEventListener('blur', () => showDay(undefined))
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show)
  for (const box of boxes) box.addEventListener('change', () => toggle(box.value))
  for (const link of findAll("nav [aria-label='Chart'] a")) {
    link.addEventListener('click', (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return
      event.preventDefault()
      change(link.href)
    })
  }
  // The search asks for an app that it has found.
  document.addEventListener('draw', ({ detail: id }) => drawFound(id))
  addEventListener('popstate', () => {
    if (table) slots = slotsOf(location.search)
    show()
  })
}

if (figure) startChart().catch((error) => say(`The chart cannot be drawn: ${error.message}`))

// Forms: the address has no empty fields, and keeps the drawn apps.
for (const form of findAll('nav form, footer form')) {
  form.addEventListener('formdata', ({ formData }) => {
    const empty = Array.from(formData).filter(([, value]) => value === '')
    for (const [name] of empty) formData.delete(name)
    for (const [name, value] of kept()) formData.set(name, value)
  })
  if ('atOnce' in form.dataset) form.addEventListener('change', () => form.requestSubmit())
}
