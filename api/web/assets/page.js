// What a script adds to a page that is whole without it: copy buttons, and a legend that lights up its part of the
// chart.

for (const block of document.querySelectorAll('pre.copy')) {
  const text = block.textContent.trim()
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = 'Copy'
  button.addEventListener('click', () => {
    navigator.clipboard.writeText(text).then(
      () => (button.textContent = 'Copied'),
      () => (button.textContent = 'Not allowed'),
    )
  })
  block.append(button)
}

for (const chart of document.querySelectorAll('svg.chart')) {
  const items = chart.parentElement.querySelectorAll('.legend li')
  for (const item of items) {
    const bands = chart.querySelectorAll(`.band-${item.dataset.band}`)
    const light = (lit) => {
      chart.classList.toggle('dimmed', lit)
      for (const band of bands) band.classList.toggle('lit', lit)
    }
    item.addEventListener('mouseenter', () => light(true))
    item.addEventListener('mouseleave', () => light(false))
  }
}
