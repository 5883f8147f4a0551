// Nothing is loaded from outside.
performance.getEntriesByType('resource').every(r => new URL(r.name).origin === location.origin)
	&& [...document.querySelectorAll('[src], link[href]')].every(e => new URL(e.src || e.href, location.href).origin === location.origin)
