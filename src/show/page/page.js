// What `rlock status --html` does in a browser that runs scripts: the filter by name, the age of the page, and the rows
// behind a bar. Without it, everything can be read, and links lead to the rows. Names are only read as text.
'use strict';
const all = (what) => [...document.querySelectorAll(what)];
const find = document.getElementById('find');
// Of each lock, by its id. To look for each lock's rows would take minutes if there are thousands.
const rowsOf = {};
for (const row of all('tr[data-lock]')) (rowsOf[row.dataset.lock] ??= []).push(row);
const locks = all('article').map((it) => ({
  it, name: it.querySelector('h3').textContent.toLowerCase(), rows: rowsOf[it.id] ?? [] }));

function filter() {
  const wanted = find.value.trim().toLowerCase();
  let shown = 0;
  for (const { it, name, rows } of locks) {
    const fits = name.includes(wanted);
    shown += fits;
    for (const element of [it, ...rows]) element.hidden = !fits;
  }
  document.getElementById('count').textContent = wanted ? `${shown} of ${locks.length}` : '';
}

function tellAge() {
  const minutes = Math.floor((Date.now() - Date.parse(document.getElementById('written').dateTime)) / 60000);
  const [number, unit] = minutes < 120 ? [minutes, 'minute'] : [Math.floor(minutes / 60), 'hour'];
  const text = minutes < 1 ? '' : `, ${number} ${unit}${number === 1 ? '' : 's'} ago`;
  document.getElementById('age').textContent = text;
}

// The rows of a bar are "7-9 12": numbers of rows. If a filter hides all of them, it is turned off.
function mark(event) {
  const bar = event.target.closest('a[data-rows]');
  if (!bar) return;
  event.preventDefault();
  for (const row of all('tr.on')) row.classList.remove('on');
  for (const part of bar.dataset.rows.split(' ')) {
    const [first, last = first] = part.split('-').map(Number);
    for (let i = first; i <= last; ++i) document.getElementById(`h${i}`)?.classList.add('on');
  }
  const rows = all('tr.on');
  if (!rows.length) return;
  rows[0].closest('details').open = true;
  const seen = () => rows.find((row) => row.getClientRects().length);
  if (!seen()) for (const input of all('#z0, #failed')) input.checked = input.id === 'z0';
  seen()?.scrollIntoView();
}

document.addEventListener('click', mark);
find.addEventListener('input', filter);
for (const element of all('.script')) element.hidden = false;
filter();
tellAge();
setInterval(tellAge, 30000);
