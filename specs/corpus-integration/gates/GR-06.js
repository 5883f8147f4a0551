// Nothing is loaded from outside.
(() => {
	const addresses = performance.getEntriesByType('resource').map(r => r.name);
	for (const e of document.querySelectorAll('[src], [srcset], [poster], object[data], image, use, link:is([rel~=stylesheet], [rel~=icon], [rel~=preload], [rel~=modulepreload], [rel~=prefetch], [rel~=manifest])')) {
		for (const name of ['src', 'poster', 'data', 'href', 'xlink:href']) addresses.push(e.getAttribute(name));
		for (const one of (e.srcset ?? '').split(',')) addresses.push(one.trim().split(/\s/)[0]);
	}
	const styles = [...document.querySelectorAll('style')].map(e => e.textContent).concat([...document.querySelectorAll('[style]')].map(e => e.getAttribute('style')));
	for (const text of styles) {
		for (const m of text.matchAll(/url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)/g)) addresses.push(m[1] || m[2]);
	}
	const outside = addresses.find(a => {
		const url = new URL(a, document.baseURI);
		return a && !/^(data|blob|about):$/.test(url.protocol) && url.origin !== location.origin;
	});
	if (outside) note(outside);
	return !outside;
})()
