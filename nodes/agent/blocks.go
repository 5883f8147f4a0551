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
// text only: what stands before the first border is part of that, unless it is too long for an argument.
func (q *question) headed() (system, prompt string) {
	if len(q.borders) == 0 {
		return q.system, q.prompt
	}
	system, prompt = q.prompt[:q.borders[0]], q.prompt[q.borders[0]:]
	if q.system != "" {
		system = q.system + "\n\n" + system
	}
	if len(system) > mostArgument {
		return q.system, q.prompt
	}
	return system, prompt
}
