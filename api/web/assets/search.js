// Lists the apps that a search finds below its field, while one types; `/` goes to the field.

const SHOWN_APPS = 8
const PAUSE_MS = 150

function element(tag, properties, ...content) {
  const made = Object.assign(document.createElement(tag), properties)
  made.append(...content)
  return made
}

const search = document.querySelector('.search')
const field = search?.elements.q
const canDraw = document.querySelector("table[data-chosen='apps']") !== null
let typing

async function suggest() {
  const text = field.value.trim()
  const found = text === '' ? [] : await findApps()
  if (text !== field.value.trim()) return
  search.querySelector('ul')?.remove()
  if (text === '') return
  search.append(element('ul', {}, ...(found.length === 0 ? [element('li', {}, 'No app found')] : found)))
}

// The page of the search is the list.
async function findApps() {
  const response = await fetch(`/apps?${new URLSearchParams(new FormData(search))}`)
  const found = new DOMParser().parseFromString(await response.text(), 'text/html')
  return [...found.querySelectorAll('a[data-id]')].slice(0, SHOWN_APPS).map((link) => {
    const { id } = link.dataset
    const entry = element('li', {}, element('a', { href: link.href }, link.textContent))
    if (canDraw) entry.append(element('button', { type: 'button', onclick: () => ask(id) }, 'Draw'))
    return entry
  })
}

function ask(id) {
  search.querySelector('ul')?.remove()
  document.dispatchEvent(new CustomEvent('draw', { detail: id }))
}

field?.addEventListener('input', () => {
  clearTimeout(typing)
  typing = setTimeout(() => void suggest(), PAUSE_MS)
})
search?.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') search.querySelector('ul')?.remove()
})
document.addEventListener('keydown', (event) => {
  const isTyping = event.target.closest?.('input:not([type=checkbox]), select, textarea')
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
  event.preventDefault()
  field?.focus()
})
