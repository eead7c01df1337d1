"""What is asked of a screen, as expressions that a browser evaluates: each is a list of what is wrong."""

# Nothing scrolls sideways but code and tables, and what can be clicked does not lie on what else can be.
OVERLAPS = """(() => {
  const wrong = [];
  const main = document.querySelector('#main');
  if (document.documentElement.scrollWidth > innerWidth) wrong.push('the page is wider than the window');
  if (main.scrollWidth > main.clientWidth) wrong.push(`the screen is ${main.scrollWidth} wide in ${main.clientWidth}`);
  const seen = [...document.querySelectorAll('button, a, input, select, textarea')].filter((each) =>
    each.checkVisibility({ opacityProperty: false }) && !each.closest('.skip'));
  const boxes = seen.map((each) => {
    let box = each.getBoundingClientRect();
    // What a scroller cuts off is not there.
    for (let up = each.parentElement; up; up = up.parentElement) {
      if (!/auto|scroll|hidden/.test(getComputedStyle(up).overflowY)) continue;
      const cut = up.getBoundingClientRect();
      box = { left: Math.max(box.left, cut.left), right: Math.min(box.right, cut.right),
        top: Math.max(box.top, cut.top), bottom: Math.min(box.bottom, cut.bottom) };
    }
    return box;
  });
  for (let i = 0; i < seen.length; ++i) {
    const a = boxes[i];
    if (a.right - a.left < 1 || a.bottom - a.top < 1) continue;
    if (a.left < -1 || a.right > innerWidth + 1) wrong.push(`outside: ${seen[i].outerHTML.slice(0, 80)}`);
    for (let j = i + 1; j < seen.length; ++j) {
      const b = boxes[j];
      if (seen[i].contains(seen[j]) || seen[j].contains(seen[i])) continue;
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
          Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
        wrong.push(`${seen[i].outerHTML.slice(0, 80)} on ${seen[j].outerHTML.slice(0, 80)}`);
    }
  }
  return wrong;
})()"""

# Text has a contrast of 4.5 to what is behind it (WCAG 2.2, 1.4.3), disabled controls left out.
CONTRAST = """(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let up = element; up; up = up.parentElement) {
      const colour = parse(getComputedStyle(up).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const wrong = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility({ visibilityProperty: true })) continue;
    if (element.closest('option, :disabled, noscript, .offscreen, .skip')) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const what = `${element.tagName}.${element.className} ${element.textContent.slice(0, 40)}`;
    if (ratio < 4.5) wrong.add(`${ratio.toFixed(2)}: ${what}`);
  }
  return [...wrong];
})()"""

# What can be used has a name, ids are there once, headings do not skip, images have a text.
NAMES = """(() => {
  const wrong = [];
  for (const each of document.querySelectorAll('button, a, input, select, textarea, dialog, meter, [role=img]')) {
    if (!each.checkVisibility()) continue;
    const label = each.id && document.querySelector(`label[for="${each.id}"]`);
    const name = each.getAttribute('aria-label') ?? label?.textContent ?? each.closest('label')?.textContent ??
      each.textContent;
    if (!name?.trim()) wrong.push(`no name: ${each.outerHTML.slice(0, 100)}`);
  }
  const ids = [...document.querySelectorAll('[id]')].map((each) => each.id);
  for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) wrong.push(`twice: ${id}`);
  for (const image of document.querySelectorAll('img')) if (!image.alt) wrong.push(`no text: ${image.src}`);
  for (const role of ['main', 'nav']) if (document.querySelectorAll(role).length !== 1) wrong.push(`not one ${role}`);
  return wrong;
})()"""

# Elements and attributes that the page makes; anything else has come out of a text.
STRANGERS = """(() => {
  const elements = new Set(('HTML HEAD BODY META TITLE LINK SCRIPT NOSCRIPT DIV SPAN P A BUTTON INPUT SELECT OPTION ' +
    'TEXTAREA FORM LABEL UL OL LI H1 H2 H3 H4 H5 H6 NAV MAIN ASIDE SECTION ARTICLE HEADER FOOTER DETAILS SUMMARY PRE ' +
    'CODE STRONG EM DEL BR HR BLOCKQUOTE TABLE THEAD TBODY TR TH TD KBD METER DIALOG FIGURE I DL DT DD svg path ' +
    'math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle mpadded mphantom msub msup msubsup munder mover ' +
    'munderover mtable mtr mtd menclose').split(' '));
  const attributes = new Set(('class href rel target start scope role tabindex id type title name for value hidden ' +
    'disabled rows placeholder enterkeyhint multiple accept style d viewBox open content charset src lang min max data-turn ' +
    'data-theme data-size data-math colspan display linethickness fence stretchy symmetric separator minsize maxsize ' +
    'movablelimits form lspace rspace width height depth voffset accent accentunder scriptlevel displaystyle ' +
    'mathcolor mathbackground mathvariant columnspan rowspan').split(' '));
  const wrong = new Set();
  for (const each of document.querySelectorAll('*')) {
    if (!elements.has(each.tagName)) wrong.add(each.tagName);
    for (const { name, value } of each.attributes) {
      if (!attributes.has(name) && !name.startsWith('aria-')) wrong.add(`${each.tagName} ${name}`);
      if (name === 'style' && !/^height: [\\dpxauto.]+;$/.test(value)) wrong.add(`style ${value}`);
      if (name === 'href' && !/^(https?:|mailto:|#|\\/ui\\/|\\/openapi)/.test(value)) wrong.add(`href ${value}`);
    }
  }
  if (document.querySelectorAll('script').length !== 1) wrong.add('scripts');
  return [...wrong];
})()"""
