// Runs the code of one check. Its value is an object whose fields are made here, so that NaN, null and objects
// cannot be mistaken for one another on the way. In the page's own world any built-in function may be the page's:
// what decides uses none, and most is null, because the clock would be the page's too.
async (code, args, most) => {
	const notes = [];
	const note = text => { if (notes.length < 5) notes[notes.length] = String(text).slice(0, 300); };
	const work = async () => {
		let v = await code(args, note);
		if (typeof v === 'function') v = await v(args, note);
		let type = typeof v;
		if (v === null) type = 'null';
		if (type === 'number' && v - v !== 0) type = v !== v ? 'NaN' : v > 0 ? 'Infinity' : '-Infinity';
		if (type === 'object') type = 'an object';
		return {Type: type, Value: type === 'boolean' || type === 'number' ? v : 0, Notes: notes};
	};
	if (most === null) return await work();
	return await Promise.race([work(), new Promise(done => setTimeout(done, most, {Type: 'timeout', Notes: notes}))]);
}
