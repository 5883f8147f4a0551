// Helpers that run in the page, in a JavaScript world of their own: what the page has put in the
// place of built-in functions does not matter here. The value is an object of functions.
({
  // Animations and transitions end at once. Switching them off would keep what fades in invisible.
  style: `*, *::before, *::after {
    animation-duration: 0s !important; animation-delay: 0s !important; animation-iteration-count: 1 !important;
    transition-duration: 0s !important; transition-delay: 0s !important;
    scroll-behavior: auto !important; caret-color: transparent !important;
  }`,

  freeze() {
    const own = globalThis.dagrunSheet;
    if (!own || !document.adoptedStyleSheets.includes(own)) {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(this.style);
      document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
      globalThis.dagrunSheet = sheet;
    }
  },

  // Those that ran before the style was there, or that scripts have made.
  finish() {
    this.freeze();
    let n = 0;
    for (const a of document.getAnimations()) {
      if (a.playState === 'finished') continue;
      n++;
      try { a.finish(); } catch { a.cancel(); } // endless ones cannot be finished
    }
    for (const v of document.querySelectorAll('video, audio')) v.pause();
    return n;
  },

  sleep: ms => new Promise(done => setTimeout(done, ms)),

  // Two frames, or half a second where none are drawn.
  async frames() {
    const frame = () => new Promise(done => requestAnimationFrame(done));
    await Promise.race([frame().then(frame), this.sleep(500)]);
  },

  // Fonts that are loading, in time or not. What failed is found by their faces: the set itself
  // says "loaded" then, too.
  async fonts(ms) {
    const done = await Promise.race([document.fonts.ready.then(() => true), this.sleep(ms).then(() => false)]);
    const failed = [...document.fonts].filter(f => f.status === 'error').map(f => f.family.replace(/^["']|["']$/g, ''));
    const ctx = document.createElement('canvas').getContext('2d');
    ctx.font = '16px sans-serif';
    return {done, failed: [...new Set(failed)].sort(), width: ctx.measureText('The quick brown fox').width};
  },

  async images(ms) {
    const all = [...document.images];
    const settled = i => i.complete || new Promise(done => { i.addEventListener('load', done); i.addEventListener('error', done); });
    const drawn = i => i.naturalWidth > 0 ? i.decode().catch(() => {}) : null;
    const work = Promise.all(all.map(async i => { await settled(i); await drawn(i); }));
    const done = await Promise.race([work.then(() => true), this.sleep(ms).then(() => false)]);
    return {done, broken: all.filter(i => i.complete && !i.naturalWidth && i.currentSrc).length};
  },

  // What scrolls: the page, or a box that fills most of a page that does not.
  scroller() {
    const page = document.scrollingElement || document.documentElement;
    if (page.scrollHeight > innerHeight + 1) return page;
    const enough = innerWidth * innerHeight / 2;
    for (const e of document.querySelectorAll('body, body *')) {
      if (e.scrollHeight <= e.clientHeight + 1 || e.clientWidth * e.clientHeight < enough) continue;
      if (/auto|scroll|overlay/.test(getComputedStyle(e).overflowY)) return e;
    }
    return page;
  },

  pageHeight() {
    const page = document.scrollingElement || document.documentElement;
    return Math.ceil(Math.max(page.scrollHeight, document.documentElement.scrollHeight));
  },

  measure() {
    const s = this.scroller(), page = document.scrollingElement || document.documentElement;
    const inner = s !== page;
    return {
      height: this.pageHeight(),
      scroll: Math.ceil(s.scrollHeight), // what scroll pictures go through
      view: inner ? s.clientHeight : innerHeight,
      overflow: Math.max(0, Math.ceil(page.scrollWidth - innerWidth)),
      scroller: inner ? s.tagName.toLowerCase() + (s.id ? '#' + s.id : '') : '',
      dpr: devicePixelRatio, title: document.title, url: location.href,
    };
  },

  // Goes there and returns where that was.
  async scrollTo(y) {
    const s = this.scroller();
    s.scrollTo({top: y, left: 0, behavior: 'instant'});
    await this.frames();
    this.finish();
    return Math.round(s.scrollTop);
  },

  // Once through the page in half views, so that everything that waits to be seen has been seen: no later
  // than ms, no further than most pixels.
  async sweep(ms, most) {
    const end = performance.now() + ms;
    let y = 0, cut = false;
    for (;;) {
      const s = this.scroller(), view = Math.min(s.clientHeight || innerHeight, innerHeight);
      await this.scrollTo(y);
      if (y + view >= s.scrollHeight) break;
      if (performance.now() > end || y > most) { cut = true; break; }
      y += Math.max(50, Math.floor(view / 2));
    }
    await this.scrollTo(0);
    return {cut, reached: y};
  },

  // Number of visible characters, up to a few: within the view, or within a strip of the page.
  text(strip) {
    const enough = 2000;
    let n = 0;
    const shown = e => e.checkVisibility({opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true});
    const alpha = c => /^rgba\(.*,\s*0\)$/.test(c) || c === 'transparent';
    const top = strip ? strip.Y - scrollY : 0, bottom = strip ? top + strip.Height : innerHeight;
    const onView = r => r.width > 0 && r.height > 0 && r.right > 0 && r.left < innerWidth && r.bottom > top && r.top < bottom;
    const walk = root => {
      const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
      for (let t = texts.nextNode(); t && n < enough; t = texts.nextNode()) {
        if (t.nodeType === 1) {
          if (t.shadowRoot) walk(t.shadowRoot);
          continue;
        }
        const text = t.data.trim(), e = t.parentElement || t.getRootNode().host;
        if (!text || !e || /^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE|TITLE)$/.test(e.tagName) || !shown(e)) continue;
        const css = getComputedStyle(e);
        if (parseFloat(css.fontSize) < 1 || alpha(css.color)) continue;
        const range = document.createRange();
        range.selectNodeContents(t);
        if ([...range.getClientRects()].some(onView)) n += text.length;
      }
    };
    if (document.body) walk(document.body);
    return n;
  },
})
