package agent

// borders returns where the blocks of a prompt end, but for the last one. Offsets stay right when something is put
// behind the prompt.
func borders(blocks []string) []int {
	var ends []int
	end := 0
	for _, b := range blocks[:len(blocks)-1] {
		end += len(b)
		ends = append(ends, end)
	}
	return ends
}

// blocks returns the prompt cut at its borders.
func (q *question) blocks() []string {
	var list []string
	begin := 0
	for _, end := range q.borders {
		list = append(list, q.prompt[begin:end])
		begin = end
	}
	return append(list, q.prompt[begin:])
}

// headed returns the system text and the prompt for a program that keeps what it has read up to the end of its system
// text only: the fixed blocks in front are part of that, unless they are too long for an argument. What a run
// wrote never speaks as the system.
func (q *question) headed() (system, prompt string) {
	n := min(q.fixed, len(q.borders))
	if n == 0 {
		return q.system, q.prompt
	}
	end := q.borders[n-1]
	system, prompt = q.prompt[:end], q.prompt[end:]
	if q.system != "" {
		system = q.system + "\n\n" + system
	}
	if len(system) > mostArgument {
		return q.system, q.prompt
	}
	return system, prompt
}
