// Adds to a page, which is complete otherwise: its chart, which ticked rows make up.

const LIGHT = ['#3b6fd4', '#dd7a00', '#d03a34', '#10a39a', '#3f5a0c', '#ea62a4', '#552a96']
const DARK = ['#4f7cf0', '#eda73c', '#e4574c', '#4fc6bf', '#cfe878', '#fbc2dd', '#b285f0']
const REST = '#6c717a'
const GRID = '#88888840'

const find = (selector) => document.querySelector(selector)
const [figure, canvas, search] = ['figure', 'canvas', '[type=search]'].map(find)
const category = find('select[name=category]')
const subject = figure?.dataset.subject
const boxes = [...document.querySelectorAll('td input')]
const dark = matchMedia('(prefers-color-scheme: dark)')
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })
const compact = (value) => short.format(value)
const numbers = (values) => values?.map((value) => value && Number(value))
const sum = (values) => values.reduce((total, value) => total + value, 0)
const parameter = (name) => new URLSearchParams(location.search).get(name)
const isStacked = parameter('chart') !== 'lines'
const colourAt = (place) => (dark.matches ? DARK : LIGHT)[place]
const say = (text) => find('figcaption').replaceChildren(text)

// The drawn series by their colour: an id, or null where none is drawn. An eighth one takes the place of `replaced`.
let drawn, data, items, chart, readDay
let replaced = LIGHT.length - 1

const drawnIds = () => drawn.filter((id) => id !== null).join(',') || 'none'

/** An address of this list with what is drawn; `ids` is null for the first of the list. */
function withDrawn(address, ids) {
  const url = new URL(address)
  url.searchParams.delete(subject)
  if (ids) url.searchParams.append(subject, ids)
  return url.href.replaceAll('%2C', ',')
}

// A legend as wide as the chart would hide the colours.
const shorten = (name) => name.replace(/^(.{30}).{3,}$/su, '$1…')

function datasets() {
  const style = (color) => ({ backgroundColor: color, borderColor: color, borderWidth: isStacked ? 0 : 2 })
  const sets = drawn.flatMap((id, place) => {
    if (id === null) return []
    const { name, in_list, values } = items.get(id)
    return [{ id, label: shorten(name), in_list, data: values, ...style(colourAt(place)) }]
  })
  sets.sort((one, other) => sum(other.data) - sum(one.data))
  if (isStacked && data.total) {
    const listed = sets.filter(({ in_list }) => in_list)
    const rest = data.total.map((total, day) => total && total - sum(listed.map((set) => set.data[day])))
    if (sum(rest) > 0) sets.push({ label: 'all others', data: rest, ...style(REST) })
  }
  // A band over the days without data: a gap, never a zero.
  const missing = data.coverage.map((status) => (status === 'missing' ? 1 : null))
  const whole = { grouped: false, barPercentage: 1, categoryPercentage: 1, inflateAmount: 0 }
  const band = { type: 'bar', yAxisID: 'gap', backgroundColor: GRID, ...whole }
  return [...sets, { label: 'no data', data: missing, ...band }]
}

const DAY = { day: 'numeric', month: 'short', timeZone: 'UTC' }
const dayName = (index, parts) => new Date(data.days[index]).toLocaleDateString('en-GB', { ...DAY, ...parts })

// Ten lines have room in the chart of a phone.
const DENSE = { bodySpacing: 0, titleMarginBottom: 3, footerMarginTop: 3, boxWidth: 9, boxHeight: 9 }

const tooltip = {
  ...DENSE,
  itemSort: (one, other) => (isStacked ? other.datasetIndex - one.datasetIndex : other.raw - one.raw),
  filter: ({ raw }) => raw !== null,
  callbacks: {
    title: ([{ dataIndex }]) => {
      const status = data.coverage[dataIndex]
      const day = dayName(dataIndex, { weekday: 'short', year: 'numeric' })
      return status === 'complete' ? day : `${day} (${status})`
    },
    // The marks around a name, which may turn the direction of writing, keep the figure after it as it is.
    label: ({ dataset: { label, yAxisID }, raw }) =>
      yAxisID ? ` ${label}` : ` \u2068${label}\u2069: ${compact(raw)}`,
    footer: (points) => {
      const total = compact(sum(points.map(({ raw }) => raw)))
      return isStacked && !points[0].dataset.yAxisID ? `Total: ${total}` : ''
    },
  },
}

// On a phone the boxes of the table are the legend.
const legend = {
  display: innerWidth >= 640 || !subject,
  position: 'bottom',
  labels: { boxWidth: 10, boxHeight: 10, filter: ({ text }) => text !== 'no data' },
  onClick: (_event, { datasetIndex }) => toggle(chart.data.datasets[datasetIndex].id),
}

function options() {
  const parts = data.days.length > 180 ? { year: '2-digit' } : {}
  const dayTicks = { maxRotation: 0, autoSkipPadding: 16, callback: (index) => dayName(index, parts) }
  const title = { display: true, text: canvas.ariaLabel.split(',')[0] }
  return {
    animation: false,
    maintainAspectRatio: false,
    interaction: { mode: 'index', intersect: false },
    datasets: { bar: { categoryPercentage: 0.92, barPercentage: 1, maxBarThickness: 72 } },
    elements: { point: { radius: data.days.length === 1 ? 3 : 0 } },
    plugins: { legend, tooltip },
    scales: {
      x: { stacked: isStacked, offset: true, grid: { display: false }, ticks: dayTicks },
      y: { stacked: isStacked, beginAtZero: true, ticks: { maxTicksLimit: 6, callback: compact }, title },
      gap: { display: false, min: 0, max: 1 },
    },
  }
}

/** Draws what the address names, by default the first of the list; of an app, both of its series. */
function showAddress() {
  const ids = parameter(subject)?.split(',') ?? boxes.map((box) => box.value)
  // A snapshot may lack what the address names.
  const named = subject ? [...new Set(ids)].filter((id) => items.has(id)) : [...items.keys()]
  drawn = LIGHT.map((_colour, place) => named[place] ?? null)
  show()
}

/** Shows what is drawn in the chart and the boxes; links keep it. */
function show() {
  Object.assign(Chart.defaults, { color: getComputedStyle(canvas).color, borderColor: GRID })
  for (const box of boxes) {
    box.checked = drawn.includes(box.value)
    box.style.accentColor = colourAt(drawn.indexOf(box.value)) ?? ''
  }
  for (const link of document.querySelectorAll('nav a, #list [rel]')) {
    if (link.pathname === location.pathname) link.href = withDrawn(link.href, parameter(subject))
  }
  readDay = undefined
  chart?.destroy()
  const type = isStacked ? 'bar' : 'line'
  chart = new Chart(canvas, { type, data: { labels: data.days, datasets: datasets() }, options: options() })
}

function toggle(id) {
  if (!subject || !items.has(id)) return
  const isDrawn = drawn.includes(id)
  let place = drawn.indexOf(isDrawn ? id : null)
  let says = ''
  if (place === -1) {
    place = replaced
    replaced = (replaced || LIGHT.length) - 1
    says = `${items.get(id).name} is drawn instead of ${items.get(drawn[place]).name}`
  }
  drawn[place] = isDrawn ? null : id
  history.pushState(null, '', withDrawn(location, drawnIds()))
  show()
  say(says)
}

const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }

function readByKeyboard(event) {
  if (event.key === 'Escape') return readOut(undefined)
  const step = STEPS[event.key]
  if (!step) return
  event.preventDefault()
  const last = data.days.length - 1
  readOut(Math.min(Math.max((readDay ?? (step > 0 ? -1 : last + 1)) + step, 0), last))
}

function readOut(index) {
  readDay = index
  const active = chart.data.datasets.flatMap(({ data: values }, datasetIndex) =>
    (values[index] ?? null) === null ? [] : [{ datasetIndex, index }],
  )
  chart.setActiveElements(active)
  chart.tooltip.setActiveElements(active, { x: 0, y: 0 })
  chart.update()
  const { title = [], body = [], footer = [] } = active.length === 0 ? {} : chart.tooltip
  say([...title, ...body.flatMap(({ lines }) => lines), ...footer].join(', '))
}

try {
  if (figure) {
    data = JSON.parse(find('[type="application/json"]').textContent)
    data.total = numbers(data.total)
    items = new Map(data.items.map((item) => [item.id, { ...item, values: numbers(item.values) }]))
    const ticked = boxes.filter((box) => box.checked).map((box) => box.value)
    showAddress()
    for (const id of ticked) if (!drawn.includes(id)) toggle(id)
    canvas.addEventListener('keydown', readByKeyboard)
    canvas.addEventListener('blur', () => readOut(undefined))
    dark.addEventListener('change', show)
    for (const box of boxes) box.addEventListener('change', () => toggle(box.value))
    addEventListener('popstate', showAddress)
  }
} catch (error) {
  // The rest of the page works without its chart.
  say(`The chart cannot be drawn (${error.message}): reload the page`)
}

document.addEventListener('keydown', (event) => {
  const isTyping = event.target.matches('[type=search], [type=date], select')
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey) return
  event.preventDefault()
  search?.focus()
})

// A choice applies at once, and the keyboard goes on from it.
category?.addEventListener('change', () => {
  sessionStorage.setItem('choice', 'category')
  category.form.requestSubmit()
})
if (sessionStorage.getItem('choice')) category?.focus()
sessionStorage.removeItem('choice')

// Forms keep what is drawn, so that a search adds to it, and send no empty fields.
document.addEventListener('formdata', ({ target, formData }) => {
  const isSearch = target.matches('[role=search]')
  if (subject) formData.set(subject, isSearch ? drawnIds() : (parameter(subject) ?? ''))
  for (const [name, value] of Array.from(formData)) if (value === '') formData.delete(name)
})

// A page that the visitor comes back to has its own choices again.
addEventListener('pagehide', () => {
  for (const form of document.forms) form.reset()
})
