// What `rlock status --html` does in a browser that runs scripts: the filter by name, the age of the page, and the rows
// behind a bar. Without it, everything can be read, and links lead to the rows. Names are only read as text.
'use strict';
const all = (what) => [...document.querySelectorAll(what)];
const find = document.getElementById('find');
const locks = all('article').map((it) => ({
  it, name: it.querySelector('h3').textContent.toLowerCase(), rows: all(`tr[data-lock="${it.id}"]`) }));

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

// The rows of a bar are "7-9 12": numbers of rows.
function mark(event) {
  const bar = event.target.closest('a[data-rows]');
  if (!bar) return;
  for (const row of all('tr.on')) row.classList.remove('on');
  for (const part of bar.dataset.rows.split(' ')) {
    const [first, last = first] = part.split('-').map(Number);
    for (let i = first; i <= last; ++i) document.getElementById(`h${i}`)?.classList.add('on');
  }
  const row = document.querySelector(bar.getAttribute('href'));
  if (row) row.closest('details').open = true;
}

document.addEventListener('click', mark);
find.addEventListener('input', filter);
for (const element of all('.script')) element.hidden = false;
filter();
tellAge();
setInterval(tellAge, 30000);
