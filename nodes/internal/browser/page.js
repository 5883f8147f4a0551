// Helpers that run in the page, in a JavaScript world of their own: what the page has put in the
// place of built-in functions does not matter here. The value is an object of functions.
(() => {
// The document's own properties, also where the page has elements of the same names.
const doc = name => {
  const v = Reflect.get(Document.prototype, name, document);
  return typeof v === 'function' ? v.bind(document) : v;
};
const scrolling = () => doc('scrollingElement') || doc('documentElement');

// The same of an element: a form has its fields in the place of them.
const own = (e, name) => {
  if (!(e instanceof HTMLFormElement)) return typeof e[name] === 'function' ? e[name].bind(e) : e[name];
  const v = Reflect.get(HTMLFormElement.prototype, name, e);
  return typeof v === 'function' ? v.bind(e) : v;
};
const above = e => own(e, 'parentElement') || own(e, 'getRootNode')().host;

return {
  // Animations end at once; switching them off would keep what fades in invisible. auto is 0s for those that follow
  // time, and leaves those that follow scrolling alone. Transitions, whose end scripts wait for, and what is out of this
  // sheet's reach run at many times their speed instead.
  style: `*, *::before, *::after {
    animation-duration: 0s !important; animation-duration: auto !important;
    animation-delay: 0s !important; animation-iteration-count: 1 !important;
    scroll-behavior: auto !important; caret-color: transparent !important;
  }`,

  freeze() {
    const kept = globalThis.dagrunSheet;
    if (!kept || !doc('adoptedStyleSheets').includes(kept)) {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(this.style);
      Reflect.set(Document.prototype, 'adoptedStyleSheets', [...doc('adoptedStyleSheets'), sheet], document);
      globalThis.dagrunSheet = sheet;
    }
  },

  // Those that ran before the style was there, that scripts have made, or that are in a shadow tree. What follows
  // the scroll position of the whole page stays with it. A tall picture shows all at once, nothing comes into view and
  // leaves it: what follows the way of an element through the view is as in its middle, what follows the scroll
  // position of an element is past its end.
  finish() {
    this.freeze();
    let n = 0;
    for (const root of this.roots()) {
      for (const a of root === document ? doc('getAnimations')() : root.getAnimations()) {
        if (a.playState === 'finished' || this.followsPage(a.timeline)) continue;
        n++;
        try {
          if (this.comesIntoView(a.timeline)) a.currentTime = CSS.percent(50).sub(a.startTime ?? CSS.percent(0)); // its own time begins with its range
          else a.finish();
          if (a.timeline !== doc('timeline')) { a.commitStyles(); a.cancel(); }
        } catch { a.cancel(); } // endless ones cannot be finished
      }
    }
    for (const v of doc('querySelectorAll')('video, audio')) v.pause();
    for (const s of doc('querySelectorAll')('svg')) this.finishSVG(s);
    return n;
  },

  comesIntoView: timeline => typeof ViewTimeline === 'function' && timeline instanceof ViewTimeline,

  followsPage(timeline) {
    return typeof ScrollTimeline === 'function' && timeline instanceof ScrollTimeline && !this.comesIntoView(timeline);
  },

  // Animations of SVG's own stand at the end of the last one that has an end. One that is past it does not tell any more
  // when it began.
  finishSVG(svg) {
    if (svg.ownerSVGElement || !svg.querySelector('animate, animateTransform, animateMotion, set')) return;
    const ends = globalThis.dagrunEnds ??= new WeakMap();
    let end = ends.get(svg) || 0;
    for (const a of svg.querySelectorAll('animate, animateTransform, animateMotion, set')) {
      const times = Number(a.getAttribute('repeatCount') || 1);
      if (!Number.isFinite(times) || a.getAttribute('repeatDur') === 'indefinite') continue;
      try { end = Math.max(end, a.getStartTime() + a.getSimpleDuration() * times); } catch { } // waits for an event, or has no end
    }
    ends.set(svg, end);
    svg.pauseAnimations();
    svg.setCurrentTime(end);
  },

  // The document and the shadow trees in it that are open, in the first part of a huge page. see is given each element.
  roots(see = () => {}) {
    const roots = [document];
    for (let n = 0, i = 0; i < roots.length; i++) {
      const walk = doc('createTreeWalker')(roots[i], NodeFilter.SHOW_ELEMENT);
      for (; n < 20000 && walk.nextNode(); n++) {
        see(walk.currentNode);
        const shadow = own(walk.currentNode, 'shadowRoot');
        if (shadow) roots.push(shadow);
      }
    }
    return roots;
  },

  // Lays out and draws what waits for that until it comes near the view: a tall picture shows it from afar.
  unfold() {
    const waiting = [];
    this.roots(e => { if (getComputedStyle(e).contentVisibility === 'auto') waiting.push(e); });
    for (const e of waiting) own(e, 'style')?.setProperty('content-visibility', 'visible', 'important');
  },

  sleep: ms => new Promise(done => setTimeout(done, ms)),

  // The next frame, or half a second where none are drawn.
  frame() { return Promise.race([new Promise(done => requestAnimationFrame(() => done(true))), this.sleep(500)]); },

  async frames() { await this.frame() && await this.frame(); },

  // Whether there is anything that could be drawn: a script that leads on before the body stops the parser.
  there() { return doc('body') != null || doc('documentElement') != null && !(document instanceof HTMLDocument); },

  // Rests for a while, and on until scripts change nothing any more, or too late.
  async still(least, most) {
    let last = performance.now();
    const begin = last, calm = Math.min(least, 100);
    const seen = new MutationObserver(() => { last = performance.now(); });
    for (const root of this.roots()) seen.observe(root, {subtree: true, childList: true, attributes: true, characterData: true});
    for (let now = begin; ; now = performance.now()) {
      const left = Math.max(begin + least, last + calm) - now;
      if (left <= 0 || now - begin > most) { seen.disconnect(); return left <= 0; }
      await this.sleep(left);
    }
  },

  // Fonts that are loading, in time or not. What failed is found by their faces: the set itself
  // says "loaded" then, too.
  async fonts(ms) {
    const fonts = doc('fonts');
    const done = await Promise.race([fonts.ready.then(() => true), this.sleep(ms).then(() => false)]);
    const failed = [...fonts].filter(f => f.status === 'error').map(f => f.family.replace(/^["']|["']$/g, ''));
    const ctx = new OffscreenCanvas(1, 1).getContext('2d');
    ctx.font = '16px sans-serif';
    return {done, failed: [...new Set(failed)].sort(), width: ctx.measureText('The quick brown fox').width};
  },

  // Characters that no font here has, so that a box stands for them: those that are drawn like one that nothing
  // is assigned to. Common ones are taken for granted; a long page is read in part.
  boxes() {
    const missing = new Set(), known = new Set(), never = '\u0378', size = 24;
    const canvas = doc('createElementNS')('http://www.w3.org/1999/xhtml', 'canvas');
    canvas.width = canvas.height = size;
    const ctx = canvas.getContext('2d', {willReadFrequently: true});
    const drawn = c => {
      ctx.clearRect(0, 0, size, size);
      ctx.fillText(c, 2, size - 6);
      return ctx.getImageData(0, 0, size, size).data.join();
    };
    const like = new Map();
    const texts = doc('createTreeWalker')(doc('documentElement'), NodeFilter.SHOW_TEXT);
    for (let n = 0; n < 20000 && known.size < 500 && texts.nextNode(); n++) {
      const rare = texts.currentNode.data.match(/[^\u0000-\u02ff\p{M}\p{Cc}\p{Cf}\p{Cs}\p{Z}]/gu), e = texts.currentNode.parentElement;
      if (!rare || !e || !own(e, 'checkVisibility')()) continue;
      const family = getComputedStyle(e).fontFamily;
      ctx.font = `16px ${family}`;
      if (!like.has(family)) like.set(family, drawn(never));
      for (const c of new Set(rare)) {
        if (known.has(family + c)) continue;
        known.add(family + c);
        if (drawn(c) === like.get(family)) missing.add(c);
      }
    }
    return [...missing].sort().slice(0, 40);
  },

  // Images that are loading, in time or not. One that waits to be seen, and was not while the page was scrolled through,
  // is waited for by nobody; one that came in time is there already. What is there is drawn ahead where the browser gets to
  // it: it does so when it makes its next picture, and at the latest for the one that is asked of it.
  async images(ms) {
    const all = this.roots().flatMap(root => [...Reflect.get(root === document ? Document.prototype : DocumentFragment.prototype, 'querySelectorAll').call(root, 'img')]);
    const settled = i => i.complete || i.loading === 'lazy' || new Promise(done => { i.addEventListener('load', done); i.addEventListener('error', done); });
    const drawn = i => i.naturalWidth > 0 ? i.decode().catch(() => {}) : null;
    const within = (work, ms) => Promise.race([Promise.all(work).then(() => true), this.sleep(ms).then(() => false)]);
    const done = await within(all.map(settled), ms);
    await within(all.map(drawn), Math.min(ms, 500));
    return {done, broken: all.filter(i => i.complete && !i.naturalWidth && i.currentSrc).length};
  },

  // What scrolls: the page, or a box or frame that fills most of a page that does not. They are looked for from
  // some points of the view outwards, so that a huge page costs no more than a small one.
  scroller() {
    const page = scrolling();
    if (page.scrollHeight > innerHeight + 1) return page;
    const enough = innerWidth * innerHeight / 2;
    for (const [x, y] of [[.5, .5], [.5, .25], [.5, .75], [.25, .5], [.75, .5]]) {
      for (let e = this.at(innerWidth * x, innerHeight * y); e && e !== page; e = above(e)) {
        if (own(e, 'clientWidth') * own(e, 'clientHeight') < enough) continue;
        const inner = /^I?FRAME$/.test(own(e, 'tagName')) && e.contentDocument?.scrollingElement;
        const s = inner || e, scrolls = inner || /auto|scroll|overlay/.test(getComputedStyle(e).overflowY);
        if (scrolls && own(s, 'scrollHeight') > own(s, 'clientHeight') + 1) return s;
      }
    }
    return page;
  },

  // The innermost element at a point, also within shadow trees that are open.
  at(x, y) {
    let e = doc('elementFromPoint')(x, y);
    for (let inner; e && (inner = own(e, 'shadowRoot')?.elementFromPoint(x, y)) && inner !== e;) e = inner;
    return e;
  },

  // The element of this document that scrolls, or the frame of what does.
  boxOf(s) { return own(s, 'ownerDocument') === document ? s : own(s, 'ownerDocument').defaultView.frameElement; },

  // Lays out what scrolls within the page at its full height, so that the page shows all of it. Returns whether it does.
  // Boxes that cut off much of what they hold, as they stand now: their names, and of how many pixels how many are to be
  // seen. A box that is closed or small hides on purpose (menus, folded parts); the page itself is measured elsewhere.
  hidden() {
    const found = [];
    this.roots(e => {
      if (e === doc('documentElement') || e === doc('body') || !/hidden|clip|auto|scroll/.test(getComputedStyle(e).overflowY)) return;
      const whole = own(e, 'scrollHeight'), seen = own(e, 'clientHeight'), r = own(e, 'getBoundingClientRect')();
      if (whole - seen < Math.max(100, whole / 5) || r.width < innerWidth / 3 || seen < innerHeight / 4) return;
      if (!own(e, 'checkVisibility')()) return;
      const id = own(e, 'id'), first = own(e, 'classList')[0];
      found.push({name: own(e, 'tagName').toLowerCase() + (id ? '#' + id : first ? '.' + first : ''), seen, whole});
    });
    return found.slice(0, 5);
  },

  unroll() {
    const s = this.scroller(), box = this.boxOf(s), want = own(s, 'scrollHeight');
    globalThis.dagrunRolled = [];
    for (let e = box; e; e = above(e)) {
      const style = own(e, 'style');
      globalThis.dagrunRolled.push([e, style.cssText, own(e, 'scrollTop')]);
      const set = {height: e === box && s !== box ? want + 'px' : 'auto', 'max-height': 'none', overflow: 'visible', 'scroll-snap-type': 'none'};
      if (/fixed|absolute/.test(getComputedStyle(e).position)) set.position = 'static';
      for (const name in set) style.setProperty(name, set[name], 'important');
    }
    return this.pageHeight() >= want;
  },

  rollUp() {
    for (const [e, style, top] of globalThis.dagrunRolled || []) {
      own(e, 'style').cssText = style;
      own(e, 'scrollTo')({top, behavior: 'instant'});
    }
    globalThis.dagrunRolled = [];
  },

  pageHeight() {
    return Math.ceil(Math.max(scrolling().scrollHeight, doc('documentElement').scrollHeight));
  },

  measure() {
    const s = this.scroller(), page = scrolling(), inner = s !== page, box = this.boxOf(s);
    return {
      height: this.pageHeight(),
      scroll: Math.ceil(own(s, 'scrollHeight')), // what scroll pictures go through
      view: inner ? own(s, 'clientHeight') : innerHeight,
      overflow: Math.max(0, Math.ceil(page.scrollWidth - innerWidth)),
      scroller: inner ? own(box, 'tagName').toLowerCase() + (own(box, 'id') ? '#' + own(box, 'id') : '') : '',
      dpr: devicePixelRatio, title: String(doc('title')).slice(0, 300), url: location.href.slice(0, 2000),
    };
  },

  // Goes there and returns where that was.
  async scrollTo(y) {
    const s = this.scroller();
    own(s, 'scrollTo')({top: y, left: 0, behavior: 'instant'});
    await this.frames();
    this.finish();
    return Math.round(own(s, 'scrollTop'));
  },

  // Once through the page from y on, in small steps, so that everything that waits to be seen has been seen, also where
  // it wants to be in the middle of the view; with a rest at the bottom for scripts that wait until scrolling has ended.
  // No later than ms, no further than most pixels.
  async sweep(y, ms, most) {
    const end = performance.now() + ms;
    let cut = false, rested = false;
    this.unfold();
    for (;;) {
      const s = this.scroller(), view = Math.min(own(s, 'clientHeight') || innerHeight, innerHeight);
      own(s, 'scrollTo')({top: y, left: 0, behavior: 'instant'});
      await this.frame();
      if (y + view >= own(s, 'scrollHeight')) {
        if (rested || y === 0) break;
        rested = true;
        await this.sleep(200);
        continue;
      }
      if (performance.now() > end || y > most) { cut = true; break; }
      rested = false;
      y += Math.max(50, Math.floor(view / 8));
    }
    this.unfold();
    await this.scrollTo(0);
    return {cut, reached: y};
  },

  // Number of visible characters, up to a few: within the view, or within a strip of the page. A huge page is
  // read in part: by its nodes, not by the clock, so that it has the same number each time.
  text(strip) {
    const enough = 2000;
    let n = 0, left = 50000;
    const shown = e => own(e, 'checkVisibility')({opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true});
    const clear = c => parseFloat(c.fontSize) < 1 || [c.color, c.webkitTextFillColor].some(colour => colour === 'transparent' || /^rgba\(.*,\s*0\)$|\/ 0\)$/.test(colour));
    const css = (e, pseudo) => own(e, 'ownerDocument').defaultView.getComputedStyle(e, pseudo);
    const made = (e, pseudo) => {
      const c = css(e, pseudo), text = /^"(.*)"$/s.exec(c.content);
      return text && !clear(c) ? text[1].trim().length : 0;
    };
    const words = {
      INPUT: e => /^(hidden|checkbox|radio|color|range|file|image)$/.test(e.type) ? '' : e.value || e.placeholder,
      TEXTAREA: e => e.value || e.placeholder,
      SELECT: e => e.selectedOptions[0]?.label || '',
    };
    // view is the visible rectangle, in coordinates of the frame; thorough also counts what is no text node.
    const walk = (root, view, thorough) => {
      const seen = r => r.width > 0 && r.height > 0 && r.right > view.left && r.left < view.right && r.bottom > view.top && r.top < view.bottom;
      const element = e => {
        if (own(e, 'shadowRoot')) walk(own(e, 'shadowRoot'), view, thorough);
        const r = /^I?FRAME$/.test(own(e, 'tagName')) && e.contentDocument?.body && shown(e) && e.getBoundingClientRect();
        if (r) {
          const x = r.left + e.clientLeft, y = r.top + e.clientTop;
          walk(e.contentDocument.body, {left: Math.max(view.left - x, 0), right: Math.min(view.right - x, e.clientWidth), top: Math.max(view.top - y, 0), bottom: Math.min(view.bottom - y, e.clientHeight)}, thorough);
        }
        if (!thorough) return;
        const said = (words[own(e, 'tagName')]?.(e) || '').trim().length + made(e, '::before') + made(e, '::after');
        if (said && shown(e) && !clear(css(e)) && seen(own(e, 'getBoundingClientRect')())) n += said;
      };
      const all = root.ownerDocument.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
      for (let t = all.currentNode; t && n < enough && left-- > 0; t = all.nextNode()) {
        if (t.nodeType !== Node.TEXT_NODE) {
          if (t.nodeType === Node.ELEMENT_NODE) element(t);
          continue;
        }
        const text = t.data.trim(), e = above(t);
        if (!text || !e || /^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE|TITLE|TEXTAREA|OPTION)$/i.test(own(e, 'tagName')) || !shown(e) || clear(css(e))) continue;
        const range = t.ownerDocument.createRange();
        range.selectNodeContents(t);
        if ([...range.getClientRects()].some(seen)) n += text.length;
      }
    };
    const root = doc('body') || doc('documentElement'), top = strip ? strip.Y - scrollY : 0;
    const view = {left: 0, right: innerWidth, top, bottom: strip ? top + strip.Height : innerHeight};
    if (root) walk(root, view, false);
    if (root && n === 0) walk(root, view, true);
    return n;
  },
};
})()
