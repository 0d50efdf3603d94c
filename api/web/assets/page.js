// Adds to a page, which is complete otherwise: its chart, a search while one types, and choices that apply at once.

const LIGHT = ['#3b6fd4', '#dd7a00', '#d03a34', '#10a39a', '#3f5a0c', '#ea62a4', '#552a96']
const DARK = ['#4f7cf0', '#eda73c', '#e4574c', '#4fc6bf', '#cfe878', '#fbc2dd', '#b285f0']
const REST = '#6c717a'
const GRID = '#88888840'

const find = (selector) => document.querySelector(selector)
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })
const dark = matchMedia('(prefers-color-scheme: dark)')
const [figure, canvas, controls, search] = ['figure', 'canvas', '#controls', '#search'].map(find)
const boxes = () => [...document.querySelectorAll('td input')]
const subject = find('table[data-subject]')?.dataset.subject
const numbers = (values) => values.map((value) => (value === null ? null : Number(value)))
const sum = (values) => values.reduce((total, value) => total + value, 0)

// The drawn series: place in the chart, which is a colour, by id. The first one makes room for an eighth.
let drawn, data, chart, readDay

function drawnByAddress() {
  const given = new URLSearchParams(location.search).get(subject)?.split(',')
  const ids =
    given ??
    boxes()
      .map((box) => box.value)
      .slice(0, LIGHT.length)
  return new Map(ids.map((id, place) => [id, place]).toReversed())
}

function addressOf(change) {
  const url = new URL(location.href)
  for (const [name, value] of Object.entries(change)) {
    if (value) url.searchParams.set(name, value)
    else url.searchParams.delete(name)
  }
  return url.href.replaceAll('%2C', ',')
}

const drawnIds = () =>
  [...drawn]
    .toSorted((one, other) => one[1] - other[1])
    .map(([id]) => id)
    .join(',') || 'none'

async function get(address) {
  const response = await fetch(address)
  if (!response.ok) throw new Error(`${address} answered ${response.status}`)
  return response
}

async function load() {
  const response = await get(figure.dataset.source)
  if (subject === undefined) return readHistory(await response.text())
  const { series } = await response.json()
  const items = series[subject].map(({ app_id, app_name, model_permaslug, in_list, values }) => [
    String(app_id ?? model_permaslug),
    { name: app_name ?? model_permaslug, isListed: in_list, values: numbers(values) },
  ])
  return { ...series, total: numbers(series.total), items: new Map(items) }
}

// The history of an app has no commas but those between its columns.
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
  drawn = new Map([
    ['prompt', 0],
    ['completion', 1],
  ])
  return { days: rows.map(([day]) => day), coverage: rows.map((row) => row[5]), items }
}

const isStacked = () => new URLSearchParams(location.search).get('chart') !== 'lines'

function datasets() {
  const colours = dark.matches ? DARK : LIGHT
  const style = (colour) => ({
    backgroundColor: colour,
    borderColor: colour,
    borderWidth: isStacked() ? 0 : 2,
    pointRadius: data.days.length === 1 ? 3 : 0,
  })
  const items = [...drawn].flatMap(([id, place]) =>
    data.items.has(id) ? [{ id, place, ...data.items.get(id) }] : [],
  )
  const sets = items
    .toSorted((one, other) => sum(other.values) - sum(one.values))
    .map(({ id, place, name, values }) => ({ id, label: name, data: values, ...style(colours[place]) }))
  const listed = items.filter(({ isListed }) => isListed)
  const rest = data.total?.map((total, day) => total && total - sum(listed.map(({ values }) => values[day])))
  if (isStacked() && rest && sum(rest) > 0) sets.push({ label: 'all others', data: rest, ...style(REST) })
  // A band over the days without data: a gap, never a zero.
  const missing = data.coverage.map((each) => (each === 'missing' ? 1 : null))
  const band = { type: 'bar', yAxisID: 'gap', grouped: false, barPercentage: 1, categoryPercentage: 1 }
  return [...sets, { label: 'no data', data: missing, backgroundColor: GRID, ...band }]
}

const dayName = (index, parts) =>
  new Date(data.days[index]).toLocaleDateString('en-GB', {
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
    ...parts,
  })

const tooltip = {
  itemSort: (one, other) => (isStacked() ? other.datasetIndex - one.datasetIndex : other.raw - one.raw),
  filter: ({ raw }) => raw !== null,
  callbacks: {
    title: ([{ dataIndex }]) => {
      const coverage = data.coverage[dataIndex]
      const day = dayName(dataIndex, { weekday: 'short', year: 'numeric' })
      return coverage === 'partial' || coverage === 'restated' ? `${day} (${coverage})` : day
    },
    label: ({ dataset, raw }) => (dataset.yAxisID ? ' no data' : ` ${dataset.label}: ${compact.format(raw)}`),
    footer: (items) =>
      isStacked() && !items[0].dataset.yAxisID
        ? `Total: ${compact.format(sum(items.map(({ raw }) => raw)))}`
        : '',
  },
}

function options() {
  const stacked = isStacked()
  const year = data.days.length > 180 ? { year: '2-digit' } : {}
  const isNarrow = innerWidth < 640 && subject !== undefined
  return {
    animation: matchMedia('(prefers-reduced-motion: reduce)').matches ? false : { duration: 150 },
    maintainAspectRatio: false,
    interaction: { mode: 'index', intersect: false },
    datasets: { bar: { categoryPercentage: 0.92, barPercentage: 1, maxBarThickness: 72 } },
    plugins: {
      // On a phone the boxes have the colours.
      legend: {
        display: !isNarrow,
        position: 'bottom',
        labels: { boxWidth: 10, boxHeight: 10, filter: ({ text }) => text !== 'no data' },
        onClick: (_event, { datasetIndex }) => toggle(chart.data.datasets[datasetIndex].id),
      },
      tooltip,
    },
    scales: {
      x: {
        stacked,
        offset: true,
        grid: { display: false },
        ticks: { maxRotation: 0, autoSkipPadding: 16, callback: (index) => dayName(index, year) },
      },
      y: {
        stacked,
        beginAtZero: true,
        border: { display: false },
        ticks: { maxTicksLimit: 6, callback: (value) => compact.format(value) },
      },
      gap: { display: false, min: 0, max: 1 },
    },
  }
}

/** Shows the state in the chart, the boxes and the form. */
function show() {
  const colours = dark.matches ? DARK : LIGHT
  for (const box of boxes()) {
    box.checked = drawn.has(box.value)
    box.style.accentColor = colours[drawn.get(box.value)] ?? ''
  }
  if (controls) controls.elements.chart.value = isStacked() ? '' : 'lines'
  readDay = undefined
  chart?.destroy()
  Object.assign(Chart.defaults, { color: getComputedStyle(canvas).color, borderColor: GRID })
  chart = new Chart(canvas, {
    type: isStacked() ? 'bar' : 'line',
    data: { labels: data.days, datasets: datasets() },
    options: options(),
  })
}

function go(change) {
  history.pushState(null, '', addressOf(change))
  show()
}

function toggle(id) {
  if (!data.items.has(id) || !subject) return
  let says = ''
  if (!drawn.delete(id)) {
    const [first] = drawn.keys()
    const isFull = drawn.size === LIGHT.length
    if (isFull)
      says = `${data.items.get(id).name} is drawn instead of ${data.items.get(first)?.name ?? first}`
    if (isFull) drawn.delete(first)
    const taken = new Set(drawn.values())
    drawn.set(
      id,
      LIGHT.findIndex((_colour, place) => !taken.has(place)),
    )
  }
  go({ [subject]: drawnIds() })
  say(says)
}

function say(text) {
  find('figcaption').textContent = text
}

const KEYS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }

function readByKeyboard(event) {
  if (event.key === 'Escape') return readOut(undefined)
  const step = KEYS[event.key]
  if (step === undefined) return
  event.preventDefault()
  const last = data.days.length - 1
  readOut(Math.min(Math.max((readDay ?? (step > 0 ? -1 : last + 1)) + step, 0), last))
}

function readOut(index) {
  readDay = index
  const sets = index === undefined ? [] : chart.data.datasets
  const active = sets.flatMap((set, datasetIndex) =>
    set.data[index] === null ? [] : [{ datasetIndex, index }],
  )
  chart.setActiveElements(active)
  chart.tooltip.setActiveElements(active, { x: 0, y: 0 })
  chart.update('none')
  const { title = [], body = [], footer = [] } = active.length === 0 ? {} : chart.tooltip
  say([...title, ...body.flatMap(({ lines }) => lines), ...footer].join(', '))
}

async function start() {
  if (subject) drawn = drawnByAddress()
  data = await load()
  show()
  canvas.addEventListener('keydown', readByKeyboard)
  canvas.addEventListener('blur', () => readOut(undefined))
  dark.addEventListener('change', show)
  addEventListener('popstate', () => {
    if (subject) drawn = drawnByAddress()
    show()
  })
  document.addEventListener('change', ({ target }) => target.closest('td') && toggle(target.value))
}

if (figure) start().catch((error) => say(`The chart cannot be drawn: ${error.message}`))

// The list follows what is typed, and the chart stays.
async function searchWhileTyping() {
  const q = search.elements.q.value
  const address = addressOf({ q, [subject]: drawnIds(), offset: '' })
  const text = await (await get(address)).text()
  if (q !== search.elements.q.value) return
  const found = new DOMParser().parseFromString(text, 'text/html')
  for (const selector of ['#list']) find(selector).replaceWith(found.querySelector(selector))
  figure.dataset.source = found.querySelector('figure').dataset.source
  history.replaceState(null, '', address)
  data = await load()
  show()
}

const PAUSE_MS = 200
let typing
if (subject) {
  search.elements.q.addEventListener('input', () => {
    clearTimeout(typing)
    typing = setTimeout(() => void searchWhileTyping().catch(({ message }) => say(message)), PAUSE_MS)
  })
}
document.addEventListener('keydown', (event) => {
  const isTyping = event.target.closest('input:not([type=checkbox], [type=radio]), select')
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
  event.preventDefault()
  search?.elements.q.focus()
})

// A choice applies at once; the address has neither empty fields nor the dates of a window in days.
controls?.addEventListener('change', ({ target }) => {
  if (target.type === 'date') return
  if (target.name === 'chart' && chart) return go({ chart: target.value })
  sessionStorage.setItem('control', target.name)
  controls.requestSubmit()
})
for (const form of [controls, search]) {
  form?.addEventListener('formdata', ({ formData }) => {
    const given = new URLSearchParams(location.search).get(subject)
    if (given) formData.set(subject, given)
    const others = formData.has('dates')
      ? ['dates', 'days']
      : formData.get('days')
        ? ['start_date', 'end_date']
        : []
    const empty = [...formData].filter(([, value]) => value === '').map(([name]) => name)
    for (const name of [...others, ...empty]) formData.delete(name)
  })
}
// The chosen control is the one that a keyboard goes on from.
controls?.querySelector(`[name=${sessionStorage.getItem('control')}]:is(:checked, select)`)?.focus()
sessionStorage.removeItem('control')
