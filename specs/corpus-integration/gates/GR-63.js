// The first view shows the title and the way into the chapters.
(() => { const t = s => document.querySelector(s).getBoundingClientRect(); return t('h1').bottom <= innerHeight && t('.toc').top <= innerHeight; })()
