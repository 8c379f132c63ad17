# browser.py FOLDER: opens the pages that tests/docs/page.bats has written there, in Chromium without a screen, and uses
# them as a reader does: by pointer, by keyboard, in the dark, on a phone, and without scripts. Prints "ok NAME" or
# "not ok NAME: why" for each check below.
# Needs python3-selenium, chromium and chromium-driver of Debian.
import json
import os
import re
import sys
import tempfile
import traceback

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

FOLDER = sys.argv[1]
FLAGS = ('--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking '
         '--disable-component-update --disable-sync --hide-scrollbars')


def start(scripts=True):
    options = webdriver.ChromeOptions()
    options.binary_location = '/usr/bin/chromium'
    for flag in FLAGS.split() + ['--user-data-dir=' + tempfile.mkdtemp(dir=FOLDER)]:
        options.add_argument(flag)
    if not scripts:
        options.add_experimental_option('prefs', {'profile.managed_default_content_settings.javascript': 2})
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
    # Chromium also writes to these folders, and makes those that are missing.
    service = Service('/usr/bin/chromedriver', env={**os.environ, 'HOME': FOLDER, 'XDG_CONFIG_HOME': FOLDER})
    return webdriver.Chrome(service=service, options=options)


def look(browser, page, width=1280, scheme='light'):
    browser.execute_cdp_cmd('Emulation.setEmulatedMedia',
                            {'features': [{'name': 'prefers-color-scheme', 'value': scheme}]})
    browser.execute_cdp_cmd('Emulation.setDeviceMetricsOverride',
                            {'width': width, 'height': 900, 'deviceScaleFactor': 1, 'mobile': False})
    browser.get(f'file://{FOLDER}/{page}.html')


def seen(browser, what):
    """The elements that are displayed. Selenium itself would include those in closed details."""
    return browser.execute_script('return [...document.querySelectorAll(arguments[0])].filter(it => it.checkVisibility())',
                                  what)


def texts(browser, what):
    """Of the elements that are displayed: one request, whatever their number."""
    return browser.execute_script("""return [...document.querySelectorAll(arguments[0])].filter(it => it.checkVisibility())
        .map(it => it.innerText.trim())""", what)


def names(browser):
    return texts(browser, 'article h2')


def text(browser, what):
    return browser.find_element(By.CSS_SELECTOR, what).text


def changed(name, change):
    """jobs.html with other data, as a page of its own."""
    with open(f'{FOLDER}/jobs.html', encoding='utf-8') as file:
        page = file.read()
    start = page.index('id="data">\n') + len('id="data">\n')
    end = page.index('</script>', start)
    known = json.loads(page[start:end])
    change(known)
    with open(f'{FOLDER}/{name}.html', 'w', encoding='utf-8') as file:
        file.write(page[:start] + json.dumps(known) + page[end:])


def open_holds(browser):
    """The table of the first lock that has one. The browser tells the page a moment later that it is open."""
    browser.find_element(By.CSS_SELECTOR, 'article > details > summary').click()
    WebDriverWait(browser, 600).until(lambda _: seen(browser, 'table.holds tbody tr'))


# Of each lane that is seen: its bars from left to right, with left and width in pixels, class, text and number of holds.
LANES = """return [...document.querySelectorAll('article .track:not(.waits)')].map(lane => {
  const from = lane.getBoundingClientRect();
  return [...lane.children].map(it => { const box = it.getBoundingClientRect();
    return [box.left - from.left, box.width, it.className, it.innerText, it.holds.length, from.width, it.title]; })
    .sort((a, b) => a[0] - b[0]); })"""


def lanes(browser, page, width=1280):
    look(browser, page, width)
    found = browser.execute_script(LANES)
    for lane in found:
        for left, wide, *_, whole, _ in lane:
            assert left >= -.1 and wide >= 3.9 and left + wide <= whole + .1, (page, lane)
        for one, after in zip(lane, lane[1:]):
            assert one[0] + one[1] <= after[0] + .1, (page, one, after)
    return found


def it_was_quiet(browser):
    """Neither the policy nor the script had anything to report, on all pages so far."""
    log = browser.get_log('browser')
    assert not log, log


def hostile_texts_are_text(browser):
    look(browser, 'hostile')
    open_holds(browser)
    found = browser.execute_script("""return [window.pwned === undefined, document.scripts.length,
        document.querySelectorAll('img, iframe, link, a, svg, [onerror], [onclick]').length,
        [...document.querySelectorAll('[style]')].every(it => /^((left|width|height|bottom|--grid): [^;:]+; ?)+$/.test(it.getAttribute('style'))),
        document.querySelector('h2').textContent, document.querySelector('main').textContent]""")
    assert found[:4] == [True, 2, 0, True], found[:4]
    assert found[4] == '"><script>pwned = 1</script>\\u{202e}', found[4]
    assert '\u202e' not in found[5] and '\u2028' not in found[5], found[5]
    for part in '<img src=x onerror=pwned=1>', "'--><svg onload=pwned=1>", '</pre></noscript><script>', '</script><!--<script>\\u{2028}]]>&lt;':
        assert part in found[5], (part, found[5])
    it_was_quiet(browser)
    # A script that got in would not run.
    ran = browser.execute_script("""const it = document.createElement("script"); it.textContent = "window.pwned = 1";
        document.body.append(it); document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='pwned = 1'>");
        return window.pwned""")
    assert ran is None and browser.get_log('browser'), ran


def trouble_comes_first(browser):
    look(browser, 'jobs')
    assert text(browser, '#trouble') == '1 overdue · 1 failed last · 3 held · 1 waiting for deploy', text(browser, '#trouble')
    assert browser.title == text(browser, '#trouble') + ' – rlock'
    assert names(browser) == ['web', 'deploy', 'retry', 'burst', 'nightly', 'tick'], names(browser)
    assert 'overdue for ' in text(browser, 'article .held-by') and text(browser, 'article .badge') == 'held, overdue'
    deploy = next(it.text for it in seen(browser, 'article') if it.text.startswith('deploy'))
    assert re.search(r'release 1\.4.*1\. \S+@\S+ pid \d+\s+for .*, its turn in about \d.*hotfix', deploy, re.DOTALL), deploy

    def more(known):
        deploy = next(one for one in known['locks'] if one['name'] == 'deploy')
        deploy['waiting'] = 6
        known['locks'].append({**deploy, 'name': 'db', 'waiting': 2})
        known['locks'].append({'name': 'list', 'state': 'not a lock', 'known': True, 'other_kind': 'a list', 'waiting': 0, 'queue': []})
    changed('queues', more)
    look(browser, 'queues')
    assert text(browser, '#trouble') == ('1 overdue · 1 contested or not a lock · 1 failed last · '
                                         '4 held · 8 waiting (6 for deploy)'), text(browser, '#trouble')
    assert names(browser)[:4] == ['web', 'list', 'deploy', 'db'], names(browser)
    assert 'and 5 more' in text(browser, 'main')
    look(browser, 'empty')
    assert text(browser, '#trouble') == '0 held · 0 waiting' and names(browser) == ['nobody-uses-it']


def what_is_unusual_is_said(browser):
    def strange(known):
        web, deploy, retry = (next(one for one in known['locks'] if one['name'] == name) for name in ('web', 'deploy', 'retry'))
        web.update(ended=True, overdue_ms=0, pid=0)
        deploy.update(taken_by_rlock=False, owner='x:1', pid=0, expires_in_ms=None)
        deploy['queue'][0].update(host='', user='', pid=None)  # its record was lost
        retry['forecast'] = {'holds': 5, 'median_ms': 60000, 'p90_ms': 60000, 'wait_ms': None}
        known['totals'] = [{'name': 'tick', 'losses': 1, 'forced': 2, 'skips': 3}]
        known['remarks'] = ['7 locks are left out']
        known['about']['refused'] = 2
        pool = {**retry, 'name': 'pool', 'kind': 'semaphore', 'slots': 3, 'slots_taken': 2, 'number_of_holders': 120, 'forecast': None}
        pool['holders'] = [{**retry, 'slot_numbers': [1], 'resources': ['gpu1']}, {**retry, 'mode': 'read'}] * 4
        known['locks'].append(pool)
    changed('unusual', strange)
    look(browser, 'unusual')
    by_name = {it.text.split()[0]: it.text for it in seen(browser, 'article')}
    assert 'held, job ended' in by_name['web'] and 'has ended; --min-hold keeps the lock' in by_name['web'] and ' pid ' not in by_name['web']
    assert 'x:1' in by_name['deploy'] and 'not taken by rlock' in by_name['deploy'] and 'never ends' in by_name['deploy']
    assert ' pid ' not in by_name['deploy'], by_name['deploy']
    assert 'usually 1m00s each; this one already takes longer' in by_name['retry'], by_name['retry']
    assert '1 lost · 2 taken away · 3 not acquired' in by_name['tick'], by_name['tick']
    assert '2 of 3 slots taken' in by_name['pool'] and '(gpu1)' in by_name['pool'] and '(reads)' in by_name['pool'], by_name['pool']
    assert 'and 2 more' in by_name['pool'] and 'and 112 more' in by_name['pool'], by_name['pool']
    assert text(browser, '#trouble').endswith(' · 2 unknown') and '7 locks are left out' in text(browser, 'header')

    def others(known):
        deploy, retry = (next(one for one in known['locks'] if one['name'] == name) for name in ('deploy', 'retry'))
        deploy.update(queue=[], waiting=0, fair_queue=['java:7', 'java:8'], listening=3)
        known['locks'] += [{**retry, 'name': '\ufffd', 'escaped_name': name} for name in ('\\xfe', '\\xff')]
        known['totals'] = [{'name': '\ufffd', 'escaped_name': '\\xff', 'losses': 4, 'forced': 0, 'skips': 0}]
    changed('others', others)
    look(browser, 'others')
    by_name = {it.text.split()[0]: it.text for it in seen(browser, 'article')}
    assert text(browser, '#trouble').endswith(' · 2 waiting for deploy') and 'java:8' in by_name['deploy'], by_name['deploy']
    assert 'clients that listen for the release: 3' in by_name['deploy'], by_name['deploy']
    assert '6 holds, 0 failed · ' in by_name['deploy'] and ', 95 % at most ' in by_name['deploy'], by_name['deploy']
    assert '4 lost' in by_name['\\xff'] and 'lost' not in by_name['\\xfe'], by_name

    def unknown(known):
        known['locks'] = None
    changed('unknown', unknown)
    look(browser, 'unknown')
    assert text(browser, '#trouble') == 'Who holds the locks now is unknown' and len(names(browser)) == 5

    def nothing(known):
        known.update(locks=[], holds=[], totals=[], reports=[])
    changed('nothing', nothing)
    look(browser, 'nothing')
    assert text(browser, '#none') == 'No lock is known here.' and not seen(browser, '#zoom, #time, #result')

    def results(known):
        ends = [{'outcome': 'forced', 'taken_away_by': 'bob@x', 'why': 'stuck'}, {'outcome': 'gone', 'result': 'expired'},
                {'lost': True, 'why': 'no reply'}, {'result': 'signalled', 'signal': 9}, {'result': 'timed-out'},
                {'result': 'stopped', 'why': 'other'}, {'result': 'exited', 'status': 0, 'once': 'v1', 'leftovers': 'sh 7'}, {}]
        known['reports'] = []
        known['holds'] = [{'name': 'x', 'outcome': 'released', 'fine': False, 'lost': False, 'ended': '?', 'ended_ms': 1700000000000 - i,
                           'host': 'h', 'user': 'u', 'pid': 0, 'command': '', 'reason': '', 'owner': 'o', **end} for i, end in enumerate(ends)]
    changed('results', results)
    look(browser, 'results')
    browser.find_element(By.ID, 'find').send_keys('x')
    open_holds(browser)
    said = texts(browser, 'table.holds td:nth-child(4)')
    assert said == ['taken away by bob@x: stuck', 'lease ran out', 'lost: no reply', 'SIGKILL', 'too long', 'stopped: other',
                    'ok (v1); left sh 7', '-'], said


def lanes_share_one_axis(browser):
    """Each bar stands where its time is on the axis; a lock without a history has no lane."""
    look(browser, 'jobs')
    same, off, with_lane = browser.execute_script("""const axis = document.getElementById('axis').getBoundingClientRect();
        const place = time => (time - view.from) / (view.to - view.from) * axis.width;
        return [[...document.querySelectorAll('article .track')].map(it => it.getBoundingClientRect())
            .every(it => it.left == axis.left && it.width == axis.width),
          [...document.querySelectorAll('article .track > .bar')].filter(it => it.holds?.length == 1 && !it.matches('.count'))
            .map(it => Math.abs(it.getBoundingClientRect().left - axis.left - place(it.holds[0].begin))),
          [...document.querySelectorAll('article:has(.track) h2')].map(it => it.textContent).sort().join(' ')]""")
    assert same and with_lane == 'burst deploy nightly retry tick', (same, with_lane)
    assert len(off) > 10 and max(off) < 8, (len(off), max(off))


def the_axis_can_be_zoomed(browser):
    """By pointer, by buttons, and back."""
    look(browser, 'jobs')
    span = lambda: browser.execute_script('return view.to - view.from')
    whole = span()
    lane = [it for it in seen(browser, 'article .track') if it.find_element(By.XPATH, 'ancestor::article').text.startswith('nightly')][0]
    browser.execute_script('arguments[0].scrollIntoView({block: "center"})', lane)
    wide = lane.rect['width']
    ActionChains(browser).move_to_element_with_offset(lane, -wide // 4, 0).click_and_hold() \
        .move_by_offset(wide // 8, 0).move_by_offset(wide // 8, 0).release().perform()
    assert abs(span() / whole - .25) < .02, span() / whole
    assert 'nightly' in names(browser) and 'burst' not in names(browser), names(browser)
    past = texts(browser, 'article > details > summary')
    assert past in (['7 past holds'], ['8 past holds']), past
    before = browser.execute_script('return view.from')
    browser.find_element(By.ID, 'later').send_keys(Keys.ENTER)
    assert browser.execute_script('return view.from') > before and abs(span() / whole - .25) < .02
    browser.find_element(By.ID, 'earlier').send_keys(Keys.ENTER)
    browser.find_element(By.ID, 'in').click()
    assert abs(span() / whole - .125) < .01
    for _ in range(4):
        browser.find_element(By.ID, 'out').click()
    assert span() == whole and browser.find_element(By.ID, 'z0').is_selected() and len(names(browser)) == 6


def the_name_filters(browser):
    look(browser, 'jobs')
    every = names(browser)
    browser.find_element(By.ID, 'find').send_keys('NIGHT')
    assert names(browser) == ['nightly'] and text(browser, '#count') == '1 of 6', names(browser)
    assert '3 held' in text(browser, '#trouble')
    browser.find_element(By.ID, 'find').send_keys(Keys.BACKSPACE * 5)
    assert names(browser) == every
    browser.find_element(By.ID, 'find').send_keys('nothing like it')
    assert text(browser, '#none') == 'Nothing fits.' and not names(browser)


def the_time_filters(browser):
    look(browser, 'jobs')
    for level, rows in ('0', 30), ('3', 7), ('2', 1), ('1', 0):
        browser.find_element(By.ID, 'z' + level).click()
        left = [it.text for it in seen(browser, 'article') if it.text.startswith('nightly')]
        assert (f'{rows} past hold' in left[0]) if rows else not left, (level, left)
    assert names(browser) == ['web', 'deploy', 'retry', 'burst', 'tick'], names(browser)


def the_result_filters(browser):
    look(browser, 'jobs')
    result = Select(browser.find_element(By.ID, 'result'))
    result.select_by_value('failed')
    assert names(browser) == ['retry', 'burst'], names(browser)
    assert texts(browser, 'article > details > summary') == ['2 past holds', '1 past hold']
    assert not seen(browser, '.track .bar.now') and 'last 2 failed holds: median ' in text(browser, 'main')
    result.select_by_value('ok')
    assert names(browser) == ['deploy', 'burst', 'nightly', 'tick'] and not seen(browser, '.track :is(.bad, i)'), names(browser)
    result.select_by_value('any')
    assert len(names(browser)) == 6


def each_hold_has_a_bar_or_is_counted(browser):
    """A bar is wide enough to be seen, and covers no other."""
    for width in 1280, 360:
        for page, number, holds in (('overlap', 25, 50), ('readers', 1, 1), ('busy', 1, 70), ('short', 1, 5),
                                    ('crowd', 1, 101), ('absurd', 2, 3)):
            found = lanes(browser, page, width)
            bars = [bar for lane in found for bar in lane]
            assert len(found) == number and sum(bar[4] for bar in bars) == holds, (page, width, found)
            assert all(bar[3] == str(bar[4]) for bar in bars if bar[4] > 1), (page, width, found)
            if page == 'readers':
                assert bars[-1][2].endswith(' now') and bars[-1][6] == '26 holds that last', bars
            if page == 'crowd':
                assert any('1 of them failed' in bar[6] for bar in bars) and seen(browser, '.track .bar > i'), bars
    # A hold of three years is drawn from a month before the others on.
    span = browser.execute_script('return (view.to - view.from) / 86400000')
    assert 29 < span < 31 and '1970' not in text(browser, 'main'), span


def the_usual_length_is_said(browser):
    for page, said in (('jobs', 'last 30 holds: median 20m16s, longest 20m30s'),
                       ('crowd', 'last 60 holds: median 0.1s, longest 0.1s, 1 failed')):
        look(browser, page)
        assert said in text(browser, 'main'), (said, text(browser, 'main'))


def a_bar_opens_its_rows(browser):
    look(browser, 'jobs')
    browser.find_element(By.ID, 'z1').click()
    assert not seen(browser, 'table.holds')
    block = [it for it in seen(browser, '.track .bar.count') if int(it.text or 0) > 10][0]
    number = int(block.text)
    browser.execute_script('arguments[0].scrollIntoView({block: "center"})', block)
    block.click()
    assert len(seen(browser, 'table.holds tbody tr')) == number
    seen(browser, 'details[open] button')[0].click()
    assert len(seen(browser, 'table.holds tbody tr')) > number
    look(browser, 'jobs')
    seen(browser, '.lengths .bar.bad')[0].click()
    rows = texts(browser, 'table.holds tbody tr')
    assert len(rows) == 1 and 'exit 3' in rows[0], rows


def failures_differ_by_more_than_a_colour(browser):
    look(browser, 'long')
    assert 'gradient' in browser.execute_script('return getComputedStyle(document.querySelector(".track .bad")).backgroundImage')
    assert seen(browser, 'article h2')[0].text == 'n' * 200 and 'last: exit 3' in text(browser, 'article')


def times_are_in_one_zone(browser):
    browser.execute_cdp_cmd('Emulation.setTimezoneOverride', {'timezoneId': 'Asia/Kolkata'})
    for page, zone in ('jobs', 'Z'), ('local', '+05:30'):
        look(browser, page)
        assert text(browser, '#written').endswith(zone) and ('times in UTC' in text(browser, '#facts')) == (zone == 'Z')
        open_holds(browser)
        assert all(it.text.endswith(zone) for it in seen(browser, 'table.holds td:first-child'))
        bar = seen(browser, '.track .bar')[0].get_attribute('title')
        assert re.search(r'T\d\d:\d\d:\d\d' + re.escape(zone), bar) or 'held now' in bar, bar
    browser.execute_cdp_cmd('Emulation.setTimezoneOverride', {'timezoneId': 'UTC'})


# The contrast of each text with what is behind it, and of each bar with the picture's background (WCAG 2, 1.4.3, 1.4.11).
CONTRAST = '''
const light = (text) => { const c = text.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
  .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * c[0] + .7152 * c[1] + .0722 * c[2]; };
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
const behind = (it) => { for (; it; it = it.parentElement) { const c = getComputedStyle(it).backgroundColor;
  if (!/, 0\\)$|transparent/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
const back = (it) => getComputedStyle(it).backgroundColor;
const variable = (name) => { const it = document.createElement('i'); it.style.color = `var(${name})`; document.body.append(it);
  const colour = getComputedStyle(it).color; it.remove(); return colour; };
const bad = new Set(); let count = 0;
const check = (what, a, b, least) => { ++count; if (!(ratio(a, b) >= least)) bad.add(`${what}: ${a} on ${b}`); };
document.querySelectorAll('details').forEach(it => { it.open = true; });
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const it = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || it.closest('script, title, noscript, .bar')) continue;
  check(it.tagName + '.' + it.className, getComputedStyle(it).color, behind(it), 4.5);
}
const lane = back(document.querySelector('article .track')), red = variable('--bad');
for (const it of document.querySelectorAll('.bar')) {
  const hatched = it.matches('.bad'), text = it.querySelector('span');
  if (!hatched) check('bar ' + it.className, back(it), lane, 3);
  if (!text) continue;
  // On a hatched bar the text has a background of its own; in a block, a part of it may stand on the failures.
  for (const colour of [hatched ? back(text) : back(it), ...(it.querySelector('i') ? [red] : [])]) check('text ' + it.className, getComputedStyle(text).color, colour, 4.5);
}
check('bar of a failure', red, lane, 3);
check('border of the field', getComputedStyle(document.getElementById('find')).borderTopColor, behind(document.body), 3);
return [count, [...bad], getComputedStyle(document.body).backgroundColor];
'''


def contrast(browser):
    back = set()
    for scheme in 'light', 'dark':
        look(browser, 'jobs', scheme=scheme)
        count, bad, colour = browser.execute_script(CONTRAST)
        assert count > 200 and not bad, (scheme, count, bad)
        back.add(colour)
    assert len(back) == 2, back


def many_holds_open_with_little_work(browser):
    """What a browser has to lay out does not grow with the holds."""
    browser.execute_cdp_cmd('Performance.enable', {})
    for page, locks, lanes_seen, width in ('many', 2000, 100, 1280), ('full', 20, 20, 360):
        before = {it['name']: it['value'] for it in browser.execute_cdp_cmd('Performance.getMetrics', {})['metrics']}
        look(browser, page, width)
        after = {it['name']: it['value'] for it in browser.execute_cdp_cmd('Performance.getMetrics', {})['metrics']}
        layouts = after['LayoutCount'] - (before['LayoutCount'] if after['LayoutCount'] >= before['LayoutCount'] else 0)
        elements = browser.execute_script('return document.getElementsByTagName("*").length')
        assert 1000 < elements < 12000 and layouts < 20, (page, width, elements, layouts)
        assert browser.execute_script('return locks.length') == locks
        assert len(seen(browser, 'article:has(.track)')) == lanes_seen
        held = browser.execute_script("""return [...document.querySelectorAll('.track .bar')].reduce((sum, it) => sum + it.holds.length, 0)""")
        assert held == (500 if page == 'many' else 10000), held
    look(browser, 'many')
    browser.find_element(By.ID, 'find').send_keys('deploy-1999')
    assert names(browser) == ['deploy-1999']
    browser.find_element(By.ID, 'find').send_keys(Keys.BACKSPACE * 11)
    more = browser.find_element(By.ID, 'more')
    assert more.text == 'Show 1900 more'
    more.click()
    assert len(names(browser)) == 2000


def it_fits_the_screen(browser):
    for page, widths in ('jobs', (360, 768, 1280)), ('hostile', (360,)), ('empty', (360,)), ('long', (360, 1280)):
        for width in widths:
            look(browser, page, width)
            wide = browser.execute_script('''document.querySelectorAll('details').forEach(it => { it.open = true; });
                return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]''')
            assert wide[0] <= width and wide[1] > 300, (page, width, wide)


# What a screen reader needs; each line returns what is wrong.
READER = '''
const all = (what) => [...document.querySelectorAll(what)];
const said = (it) => it.getAttribute('aria-label') || (it.labels && it.labels.length && it.labels[0].textContent.trim()) ||
  (document.getElementById(it.getAttribute('aria-labelledby')) || {}).textContent || it.textContent.trim();
const wrong = [];
if (document.documentElement.lang != 'en') wrong.push('language');
if (!document.title) wrong.push('title');
if (all('h1').length != 1 || all('main').length != 1 || all('body > header').length != 1) wrong.push('landmarks');
for (const it of all('body > *')) if (!it.matches('header, main, script, noscript, [role=search]')) wrong.push('outside: ' + it.tagName);
let before = 0;
for (const it of all('h1, h2, h3')) { const level = +it.tagName[1]; if (level > before + 1) wrong.push(it.tagName); before = Math.max(level, 1); }
const ids = all('[id]').map(it => it.id);
if (new Set(ids).size != ids.length) wrong.push('ids');
for (const it of all('input, select, button, summary, article, [role=region], [role=search]')) {
  if (!it.closest('svg') && !said(it)) wrong.push('nameless ' + it.outerHTML.slice(0, 60));
}
for (const it of all('[aria-labelledby]')) if (!document.getElementById(it.getAttribute('aria-labelledby'))) wrong.push('label');
for (const it of all('table')) if (!it.caption && !it.closest('[role=region][aria-label]')) wrong.push('caption');
for (const it of all('main .track, .lengths')) if (!it.closest('[aria-hidden=true]')) wrong.push('picture');
for (const it of all('[aria-hidden=true] *')) if (it.tabIndex >= 0) wrong.push('hidden focus');
for (const it of all('th')) if (it.scope != 'col') wrong.push('scope');
return [...new Set(wrong)];
'''


def a_screen_reader_can_use_it(browser):
    for page in 'jobs', 'hostile', 'empty':
        look(browser, page)
        browser.execute_script('document.querySelectorAll("details").forEach(it => { it.open = true; })')
        WebDriverWait(browser, 600).until(lambda _: page == 'empty' or seen(browser, 'table.holds tbody tr'))
        wrong = browser.execute_script(READER)
        assert not wrong, (page, wrong)


def the_keyboard_reaches_everything(browser):
    look(browser, 'jobs')
    reached = []
    for _ in range(40):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.execute_script("""const it = document.activeElement;
            return [it.id || it.tagName, getComputedStyle(it).outlineStyle, getComputedStyle(it).outlineWidth]"""))
        if reached[-1][0] == 'SUMMARY':
            browser.switch_to.active_element.send_keys(Keys.ENTER)
    order = [it[0] for it in reached]
    assert order[:7] == ['find', 'result', 'z0', 'in', 'out', 'earlier', 'later'] and 'DIV' in order and 'SUMMARY' in order, order
    assert all(style != 'none' and width != '0px' for it, style, width in reached if it != 'BODY'), reached
    WebDriverWait(browser, 600).until(lambda _: seen(browser, 'table.holds tr'))


def it_works_without_scripts(browser):
    look(browser, 'jobs')
    body = text(browser, 'body')
    assert 'runs no scripts' in body and not seen(browser, '#tools, main'), body
    table = text(browser, 'pre').splitlines()
    assert table[0].startswith('NAME') and [line.split()[0] for line in table[1:]] == ['burst', 'deploy', 'nightly', 'retry', 'tick', 'web'], table
    assert 'held, overdue' in table[-1]
    look(browser, 'hostile')
    assert '"><script>pwned = 1</script>\\u{202e}' in text(browser, 'pre') and not seen(browser, 'img')
    assert 'release' not in text(browser, 'body') and '</pre></noscript><script>pwned = 1</script>' in text(browser, 'pre')


def run(check, browser):
    name = check.__name__
    try:
        check(browser)
        print('ok', name)
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[1].lineno
        print(f'not ok {name}: line {line}: {str(error)[:600]}'.replace('\n', ' '))


def main():
    browser = start()
    try:
        for check in (hostile_texts_are_text, trouble_comes_first, what_is_unusual_is_said, lanes_share_one_axis,
                      the_axis_can_be_zoomed, the_name_filters, the_time_filters, the_result_filters,
                      each_hold_has_a_bar_or_is_counted, the_usual_length_is_said, a_bar_opens_its_rows,
                      failures_differ_by_more_than_a_colour, times_are_in_one_zone, contrast,
                      many_holds_open_with_little_work, it_fits_the_screen, a_screen_reader_can_use_it,
                      the_keyboard_reaches_everything, it_was_quiet):
            run(check, browser)
    finally:
        browser.quit()
    browser = start(scripts=False)
    try:
        run(it_works_without_scripts, browser)
    finally:
        browser.quit()


main()
