// Extends the page, which is complete without a script: copy buttons, the figures of a chart's day by pointer, tap and
// keyboard, and a legend that highlights its part of the chart.

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })

// Commands to copy use the visitor's address.
for (const place of document.querySelectorAll('.origin')) place.textContent = location.origin

for (const block of document.querySelectorAll('pre.copy')) block.append(copyButton(block.textContent.trim()))

function copyButton(text) {
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = 'Copy'
  button.addEventListener('click', () => {
    void copy(text).then((copied) => (button.textContent = copied ? 'Copied' : 'Not allowed'))
  })
  return button
}

// Browsers offer the clipboard API over https alone; over http only the old command works.
async function copy(text) {
  if (navigator.clipboard !== undefined) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    )
  }
  const field = document.createElement('textarea')
  field.value = text
  document.body.append(field)
  field.select()
  const copied = document.execCommand('copy')
  field.remove()
  return copied
}

for (const figure of document.querySelectorAll('figure.figure')) {
  showDays(figure)
  lightBands(figure)
}

// The chart's table has the figures: each row is a column of the chart.
function showDays(figure) {
  const rows = [...figure.querySelectorAll('tbody tr')]
  const readout = figure.querySelector('.readout')
  const places = [readout.querySelector('.moment'), ...readout.querySelectorAll('.value')]
  const whole = places.map((place) => place.textContent)
  const fields = [...figure.querySelectorAll('.fields')].map((group) => [...group.children])
  // The figures are below the chart; the browser's own tooltip would cover it.
  for (const title of figure.querySelectorAll('.fields title')) title.remove()

  const slider = document.createElement('input')
  Object.assign(slider, { type: 'range', min: 0, max: rows.length - 1, value: rows.length - 1 })
  slider.setAttribute('aria-label', `Figures of one ${readout.dataset.unit}`)
  readout.prepend(slider)

  let shown
  const show = (index) => {
    for (const group of fields) {
      group[shown]?.classList.remove('now')
      group[index]?.classList.add('now')
    }
    shown = index
    const texts = index === undefined ? whole : textsOf(rows[index])
    places.forEach((place, at) => (place.textContent = texts[at]))
    if (index === undefined) return slider.removeAttribute('aria-valuetext')
    slider.value = index
    slider.setAttribute('aria-valuetext', readout.innerText.replaceAll(/\n+/g, ', '))
  }
  slider.addEventListener('input', () => show(Number(slider.value)))
  slider.addEventListener('focus', () => show(Number(slider.value)))
  slider.addEventListener('keydown', ({ key }) => key === 'Escape' && show(undefined))
  for (const group of fields) {
    group.forEach((field, index) => {
      field.addEventListener('pointerenter', () => show(index))
      field.addEventListener('pointerdown', () => show(index))
    })
  }
  for (const chart of figure.querySelectorAll('svg.chart')) {
    // After a tap the figures stay.
    chart.addEventListener('pointerleave', ({ pointerType }) => pointerType === 'mouse' && show(undefined))
  }
}

function textsOf(row) {
  const [day, ...cells] = [...row.cells].map((cell) => cell.textContent.trim())
  return [
    day,
    ...cells.map((text) => (/^[\d,]+$/.test(text) ? compact.format(text.replaceAll(',', '')) : text)),
  ]
}

function lightBands(figure) {
  for (const item of figure.querySelectorAll('.legend li')) {
    const bands = figure.querySelectorAll(`svg.chart [data-band='${item.dataset.band}']`)
    const light = (lit) => {
      for (const chart of figure.querySelectorAll('svg.chart')) chart.classList.toggle('dimmed', lit)
      for (const band of bands) band.classList.toggle('lit', lit)
    }
    item.addEventListener('mouseenter', () => light(true))
    item.addEventListener('mouseleave', () => light(false))
  }
}
