package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

// An asker puts the open questions of a run to the user at the terminal while the run is carried on, the oldest first.
// What is typed is shown by the screen where that draws, and by the terminal itself where it does not.
type asker struct {
	in     *os.File
	screen *screen
	draws  bool
	run    *run.Run
	put    func(context.Context, executor.Request) error
	flush  func() // has what was printed before appear

	known []string                            // open questions, by id; of the owner of the run's state
	news  chan []machine.EscalationOpenedBody // what is open now; holds the last list only
	ctx   context.Context                     // until stop
	stop  func()                              // may be called twice
	typed editor
	found []byte        // that was read and is no line yet
	was   *unix.Termios // how the terminal is left; nil = as it is
}

// What ends the wait for a line.
var (
	errNews  = errors.New("the open questions have changed")
	errGone  = errors.New("nobody is at the terminal any more")
	askPause = 100 * time.Millisecond // from one look for news to the next
)

// canAsk reports whether a user at a terminal reads what is printed and can answer.
func canAsk(in, out any) bool {
	for _, x := range []any{in, out} {
		f, ok := x.(*os.File)
		if !ok {
			return false
		}
		if _, err := unix.IoctlGetTermios(int(f.Fd()), getTermios); err != nil {
			return false
		}
	}
	return true
}

// newAsker begins to ask. Its caller owns the run's state, and calls stop once nobody carries the run on.
func newAsker(a asker) *asker {
	a.news = make(chan []machine.EscalationOpenedBody, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	a.ctx, a.stop = ctx, func() { cancel(); done.Wait() }
	a.look()
	done.Go(a.work)
	return &a
}

// look takes notice of what is open, on the goroutine that owns the state.
func (a *asker) look() {
	open := a.run.State().Escalations()
	if slices.EqualFunc(open, a.known, func(q machine.EscalationOpenedBody, id string) bool { return q.ID == id }) {
		return
	}
	a.known = nil
	for _, q := range open {
		a.known = append(a.known, q.ID)
	}
	select {
	case <-a.news:
	default:
	}
	a.news <- open
}

func (a *asker) work() {
	defer a.leave()
	var open []machine.EscalationOpenedBody
	for {
		if len(open) == 0 {
			a.leave()
			select {
			case open = <-a.news:
			case <-a.ctx.Done():
				return
			}
			continue
		}
		next, err := a.ask(open[0])
		switch {
		case errors.Is(err, errGone):
			_ = a.put(a.ctx, executor.Request{Unattended: true})
			a.say("Nobody answers here any more. Answer with: dagrun respond")
			return
		case err != nil:
			return
		}
		open = next
	}
}

func (a *asker) say(text string) {
	a.flush()
	fmt.Fprintln(a.screen, text)
}

// ask puts one question until it is not open any more, and returns what is.
func (a *asker) ask(q machine.EscalationOpenedBody) (open []machine.EscalationOpenedBody, err error) {
	a.typed, a.found = editor{}, nil
	a.take(true)
	show := func() { a.say(report.Prompt(q)) }
	show()
	answer := machine.EscalationAnsweredBody{ID: q.ID}
	for {
		prompt := "answer " + q.ID + "> "
		if answer.Answer != "" {
			prompt = "text for " + answer.Answer + "> "
		}
		line, err := a.line(prompt)
		switch line = strings.TrimSpace(line); {
		case errors.Is(err, errNews):
			open = <-a.news
			if slices.ContainsFunc(open, func(o machine.EscalationOpenedBody) bool { return o.ID == q.ID }) {
				continue
			}
			a.say("question " + q.ID + " needs no answer any more")
			return open, nil
		case err != nil:
			return nil, err
		case answer.Answer != "":
			if answer.Text = line; line == "" && q.Texts[answer.Answer] == "required" {
				a.say(answer.Answer + " asks for a text")
				continue
			}
		case line == "":
			show()
			continue
		default:
			if answer.Answer = chosen(q, line); answer.Answer == "" {
				a.say(fmt.Sprintf("%s is no answer to %s: want a number from 1 to %d, or one of %s",
					strconv.Quote(line), q.ID, len(q.Options), strings.Join(q.Options, ", ")))
				continue
			}
			if q.Texts[answer.Answer] != "" {
				continue
			}
		}
		err = a.put(a.ctx, executor.Request{Answer: &answer})
		if a.ctx.Err() != nil {
			return nil, a.ctx.Err()
		}
		if err == nil {
			return <-a.news, nil // the answer was recorded, and its event seen, before put has returned
		}
		a.say(err.Error())
		answer = machine.EscalationAnsweredBody{ID: q.ID}
	}
}

// chosen is the answer that a number or a name stands for; empty for none.
func chosen(q machine.EscalationOpenedBody, line string) string {
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(q.Options) {
		return q.Options[n-1]
	}
	if slices.Contains(q.Options, line) {
		return line
	}
	return ""
}

// line reads a line. Another process in the foreground of the terminal is left alone.
func (a *asker) line(prompt string) (string, error) {
	for shown := false; ; {
		for len(a.found) > 0 {
			c := a.found[0]
			a.found = a.found[1:]
			line, whole := a.typed.take(c)
			if whole {
				return line, nil
			}
			if shown = false; c == 4 && a.draws && a.typed.empty() { // Ctrl-D
				return "", errGone
			}
		}
		if !shown && a.draws {
			columns, _ := a.screen.size()
			a.screen.under(prompt + a.typed.end(columns-len(prompt)-2))
			shown = true
		}
		select {
		case <-a.ctx.Done():
			return "", a.ctx.Err()
		default:
		}
		if len(a.news) > 0 {
			return "", errNews
		}
		fd := int(a.in.Fd())
		if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && group != unix.Getpgrp() {
			time.Sleep(askPause)
			continue
		}
		a.take(false)
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(poll, int(askPause/time.Millisecond)); n <= 0 || err != nil {
			continue
		}
		var some [256]byte
		n, err := unix.Read(fd, some[:])
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		if n <= 0 {
			return "", errGone
		}
		a.found = append(a.found, some[:n]...)
	}
}

// take has the terminal give what is typed at once and show none of it, where the screen does. With anew, what was
// typed before is lost: it was no answer.
func (a *asker) take(anew bool) {
	fd := int(a.in.Fd())
	mode, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return
	}
	if a.draws && mode.Lflag&(unix.ICANON|unix.ECHO) != 0 { // also when a shell has set it otherwise in between
		if a.was == nil {
			was := *mode
			a.was = &was
		}
		mode.Lflag &^= unix.ICANON | unix.ECHO
		mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	} else if !anew {
		return
	}
	_ = unix.IoctlSetTermios(fd, setTermios, mode)
}

// leave gives the terminal back as it was.
func (a *asker) leave() {
	if a.was != nil {
		_ = unix.IoctlSetTermios(int(a.in.Fd()), setTermios, a.was)
		a.was = nil
		a.screen.under()
	}
}

// An editor is a line that is being typed.
type editor struct {
	text   []byte
	escape int // of a sequence of a key: 1 behind its escape, 2 inside of it
}

// take takes one byte and returns the line once it is whole.
func (e *editor) take(c byte) (line string, whole bool) {
	switch {
	case e.escape == 1 && (c == '[' || c == 'O'):
		e.escape = 2
	case e.escape == 1:
		e.escape = 0
	case e.escape == 2:
		if c >= 0x40 {
			e.escape = 0
		}
	case c == 0x1b:
		e.escape = 1
	case c == '\n' || c == '\r':
		line, e.text = string(e.text), nil
		return line, true
	case c == 0x7f || c == '\b':
		_, n := utf8.DecodeLastRune(e.text)
		e.text = e.text[:len(e.text)-n]
	case c == 'U'-'@':
		e.text = nil
	case c >= ' ' || c == '\t':
		e.text = append(e.text, c)
	}
	return "", false
}

func (e *editor) empty() bool { return len(e.text) == 0 }

// end is the end of the line, which fits so many columns.
func (e *editor) end(columns int) string {
	text := []rune(string(e.text))
	return string(text[max(0, len(text)-max(columns, 1)):])
}
