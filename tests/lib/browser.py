# browser.py FOLDER: opens the pages that tests/docs/page.bats has written there, in Chromium without a screen, and uses
# them as a reader does: by pointer, by keyboard, in the dark, on a phone, and without scripts. Prints "ok NAME" or
# "not ok NAME: why" for each check below; with --pictures, also writes a picture of jobs.html for each width and scheme.
# Needs python3-selenium, chromium and chromium-driver of Debian.
import sys
import tempfile
import traceback

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

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
    return webdriver.Chrome(service=Service('/usr/bin/chromedriver'), options=options)


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


def names(browser):
    return [it.text for it in seen(browser, 'article h3')]


def it_is_quiet(browser):
    """Neither the policy nor the script has anything to report."""
    for page in 'jobs', 'hostile', 'empty':
        look(browser, page)
        log = browser.get_log('browser')
        assert not log, (page, log)


def hostile_texts_are_text(browser):
    look(browser, 'hostile')
    found = browser.execute_script('''return [window.pwned === undefined, document.scripts.length,
        document.querySelectorAll('img, iframe, link, [onerror], [onclick], [style], a:not([href^="#"])').length,
        document.querySelector('h3').textContent, document.querySelector('main').textContent]''')
    assert found[:3] == [True, 1, 0], found[:3]
    assert found[3] == '"><script>pwned = 1</script>\\u{202e}', found[3]
    assert '<img src=x onerror=pwned=1>' in found[4] and '\u202e' not in found[4]
    # A script that got in would not run.
    ran = browser.execute_script('''const it = document.createElement("script"); it.textContent = "window.pwned = 1";
        document.body.append(it); document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='pwned = 1'>");
        return window.pwned''')
    assert ran is None, ran


def the_name_filters(browser):
    look(browser, 'jobs')
    every = names(browser)
    assert len(every) == 5, every
    browser.find_element(By.ID, 'find').send_keys('NIGHT')
    assert names(browser) == ['nightly'] and browser.find_element(By.ID, 'count').text == '1 of 5', names(browser)
    assert not seen(browser, '.now tbody tr')
    browser.find_element(By.ID, 'find').send_keys(Keys.BACKSPACE * 5)
    assert names(browser) == every and seen(browser, '.now tbody tr')


def the_time_filters(browser):
    look(browser, 'jobs')
    for level, rows in ('0', 30), ('3', 7), ('2', 1), ('1', 0):
        browser.find_element(By.ID, 'z' + level).click()
        pictures = browser.execute_script('''return [...document.querySelectorAll('article svg.z')]
            .filter(it => it.getBoundingClientRect().width > 0).map(it => it.classList[1])''')
        assert pictures and set(pictures) == {'z' + level}, (level, pictures)
        left = browser.execute_script('''return [...document.querySelectorAll('tr[id]')].filter(it =>
            it.closest('article').querySelector('h3').textContent == 'nightly' &&
            getComputedStyle(it).display != 'none' &&
            getComputedStyle(it.closest('article')).display != 'none').length''')
        assert left == rows, (level, left)
    assert 'nightly' not in names(browser) and 'deploy' in names(browser), names(browser)


def failures_filter(browser):
    look(browser, 'jobs')
    browser.find_element(By.ID, 'failed').click()
    assert names(browser) == ['burst', 'retry'], names(browser)
    summary = browser.find_element(By.CSS_SELECTOR, 'article.failed summary')
    summary.click()
    assert len(seen(browser, 'tr[id]')) == 1
    # A bar whose row is hidden shows it.
    summary.click()
    bar = seen(browser, 'article.failed svg.runs a:has(.f)')[0]
    browser.execute_script('arguments[0].scrollIntoView({block: "center"})', bar)
    bar.click()
    assert browser.execute_script(f'return document.getElementById("h{bar.get_attribute("data-rows")}").checkVisibility()')
    assert len(names(browser)) == 5


def every_bar_is_seen(browser):
    """Also a short one beside a long one."""
    for width in 1280, 360:
        look(browser, 'jobs', width)
        hidden = browser.execute_script('''return [...document.querySelectorAll('svg.z0 :is(.f, .b, .p)')].filter(it => {
            it.scrollIntoView({block: "center"}); const box = it.getBoundingClientRect();
            const at = document.elementFromPoint(box.left + box.width / 2, box.top + 3);
            return !at || at.closest('a, g, svg') != it.closest('a, g, svg') || (at.closest('a') == null && at != it);
          }).map(it => it.outerHTML.slice(0, 200))''')
        assert not hidden, (width, hidden)


def a_block_opens_its_rows(browser):
    for width in 1280, 360:
        look(browser, 'jobs', width)
        assert not seen(browser, 'tr[id]')
        block = [it for it in seen(browser, 'svg.z0 a') if '-' in it.get_attribute('data-rows')][0]
        browser.execute_script('arguments[0].scrollIntoView({block: "center"})', block)
        first, last = map(int, block.get_attribute('data-rows').split(' ')[0].split('-'))
        block.click()
        marked = browser.execute_script('return [...document.querySelectorAll("tr.on")].map(it => it.id)')
        assert marked[:last - first + 1] == [f'h{i}' for i in range(first, last + 1)], marked
        top = browser.execute_script(f'return document.getElementById("h{first}").getBoundingClientRect().top')
        assert 0 <= top < 900, (width, top)


# The contrast of each text with what is behind it, and of each bar with the picture's background (WCAG 2, 1.4.3, 1.4.11).
CONTRAST = '''
const light = (text) => { const c = text.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
  .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * c[0] + .7152 * c[1] + .0722 * c[2]; };
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
const behind = (it) => { for (; it; it = it.parentElement) { const c = getComputedStyle(it).backgroundColor;
  if (!/, 0\\)$|transparent/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
const fill = (it) => getComputedStyle(it).fill;
const bad = new Set(); let count = 0;
const check = (what, a, b, least) => { ++count; if (!(ratio(a, b) >= least)) bad.add(`${what}: ${a} on ${b}`); };
document.querySelectorAll('details').forEach(it => { it.open = true; });
document.querySelector('tr[id]').classList.add('on');
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const it = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || it.closest('script, title, svg')) continue;
  check(it.tagName + '.' + it.className, getComputedStyle(it).color, behind(it), 4.5);
}
const lane = fill(document.querySelector('.back')), red = fill(document.querySelector('.back0'));
for (const it of document.querySelectorAll('svg text')) {
  // A text on a hatched bar has a line around it.
  const style = getComputedStyle(it), around = style.paintOrder.startsWith('stroke') && parseFloat(style.strokeWidth) >= 4;
  const on = it.closest('.n, .who')
    ? [...it.closest('a, g').querySelectorAll('rect')].map(r => fill(r)[0] == 'r' ? fill(r) : around ? style.stroke : 'rgb(128, 128, 128)')
    : [behind(it.closest('article'))];
  for (const colour of on) check('svg ' + it.classList, fill(it), colour, 4.5);
}
for (const it of document.querySelectorAll('.f, .p, .w')) check('bar ' + it.classList, fill(it), lane, 3);
check('bar of a failure', red, lane, 3);
check('border of the field', getComputedStyle(document.getElementById('find')).borderTopColor, behind(document.body), 3);
return [count, [...bad], getComputedStyle(document.body).backgroundColor];
'''


def contrast(browser):
    back = set()
    for scheme in 'light', 'dark':
        look(browser, 'jobs', scheme=scheme)
        for failures in False, True:
            if failures:
                browser.find_element(By.ID, 'failed').click()
            count, bad, colour = browser.execute_script(CONTRAST)
            assert count > 200 and not bad, (scheme, failures, count, bad)
        back.add(colour)
    assert len(back) == 2, back


def many_locks_open_quickly(browser):
    look(browser, 'many')
    took = browser.execute_script('return performance.getEntriesByType("navigation")[0].domInteractive')
    assert took < 10000, took
    look(browser, 'many', 360)


def it_fits_the_screen(browser):
    for page in 'jobs', 'hostile', 'empty':
        for width in 360, 768, 1280:
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
for (const it of all('body > *')) if (!it.matches('header, main, script, [role=search]')) wrong.push('outside: ' + it.tagName);
let before = 0;
for (const it of all('h1, h2, h3')) { const level = +it.tagName[1]; if (level > before + 1) wrong.push(it.tagName); before = level; }
const ids = all('[id]').map(it => it.id);
if (new Set(ids).size != ids.length) wrong.push('ids');
for (const it of all('input, summary, a, section, article, [role=region], [role=search]')) {
  if (!it.closest('svg') && !said(it)) wrong.push('nameless ' + it.outerHTML.slice(0, 60));
}
for (const it of all('[aria-labelledby]')) if (!document.getElementById(it.getAttribute('aria-labelledby'))) wrong.push('label');
for (const it of all('a')) if (!document.querySelector(it.getAttribute('href'))) wrong.push('nowhere ' + it.hash);
for (const it of all('table')) if (!it.caption && !it.closest('[role=region][aria-label]')) wrong.push('caption');
for (const it of all('svg')) if (!it.closest('[aria-hidden=true]')) wrong.push('picture');
for (const it of all('[aria-hidden=true] a')) if (it.tabIndex >= 0) wrong.push('hidden focus');
for (const it of all('figure')) if (!it.querySelector('figcaption')) wrong.push('figcaption');
return [...new Set(wrong)];
'''


def a_screen_reader_can_use_it(browser):
    for page in 'jobs', 'hostile', 'empty':
        look(browser, page)
        wrong = browser.execute_script(READER)
        assert not wrong, (page, wrong)


def the_keyboard_reaches_everything(browser):
    look(browser, 'jobs')
    reached = []
    for _ in range(40):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.execute_script('''const it = document.activeElement;
            return [it.id || it.tagName, getComputedStyle(it).outlineStyle, getComputedStyle(it).outlineWidth]'''))
        if reached[-1][0] == 'SUMMARY':
            browser.switch_to.active_element.send_keys(Keys.ENTER)
    order = [it[0] for it in reached]
    assert order[:4] == ['find', 'z0', 'failed', 'A'] and 'DIV' in order, order
    assert all(style != 'none' and width != '0px' for it, style, width in reached if it != 'BODY'), reached
    assert seen(browser, 'tr[id]')


def it_works_without_scripts(browser):
    look(browser, 'jobs')
    assert len(names(browser)) == 5 and not seen(browser, '#find') and seen(browser, '.now tbody tr')
    browser.find_element(By.ID, 'z1').click()
    assert names(browser) == ['burst', 'deploy', 'retry', 'tick'], names(browser)
    assert {it.get_attribute('class') for it in seen(browser, 'svg.z')} == {'z z1'}
    browser.find_element(By.ID, 'z0').click()
    link = [it for it in seen(browser, 'svg.z0 a') if '-' in it.get_attribute('data-rows')][0]
    link.click()
    assert seen(browser, 'tr:target')


def pictures(browser):
    for scheme in 'light', 'dark':
        for width in 360, 1280:
            look(browser, 'jobs', width, scheme)
            browser.save_screenshot(f'{FOLDER}/{scheme}-{width}.png')


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
        for check in (it_is_quiet, hostile_texts_are_text, the_name_filters, the_time_filters, failures_filter,
                      every_bar_is_seen, a_block_opens_its_rows, contrast, many_locks_open_quickly, it_fits_the_screen,
                      a_screen_reader_can_use_it, the_keyboard_reaches_everything):
            run(check, browser)
        if '--pictures' in sys.argv:
            pictures(browser)
    finally:
        browser.quit()
    browser = start(scripts=False)
    try:
        run(it_works_without_scripts, browser)
    finally:
        browser.quit()


main()
