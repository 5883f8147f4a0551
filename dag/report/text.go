package report

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

//go:embed views.tmpl
var viewsText string

// views are the templates of the texts, by name. They are read when the first is needed.
var views = sync.OnceValue(func() *template.Template {
	t := template.Must(template.New("").Funcs(template.FuncMap{
		"plain":    plainValue,
		"instant":  Instant,
		"until":    untilText,
		"duration": func(sec float64) string { return Duration(max(sec, 0.01)) },
		"time":     Duration,
		"count":    Count,
		"attempt":  AttemptText,
		"titled":   Titled,
		"digest":   shortDigest,
		"bar":      bar,
		"percent":  percent,
		"join":     func(list []string) string { return strings.Join(list, ", ") },
		"some":     Some,
		"first":    first,
		"more":     more,
		"waited":   waited,
		"shares":   shareLines,
		"trends":   trends,
		"breaker":  func(b *machine.BreakerChangedBody) string { return BreakerText(b, Instant) },
		"lines":    func(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") },
		"budget":   budgetText,
		"refuses":  refuses,
		"choices":  choices,
		"options":  func(q machine.EscalationOpenedBody) string { return Options(&q) },
		"entries":  func(title string, lines any) block { return block{title, lines} },
		"nth":      nth,
	}).Parse(viewsText))
	for _, one := range t.Templates() {
		makePlain(one.Root)
	}
	return t
})

// write prints a view by the template of a name.
func write(w io.Writer, name string, view any) error {
	out := bufio.NewWriter(w)
	if err := views().ExecuteTemplate(out, name, view); err != nil {
		return err
	}
	return out.Flush()
}

// makePlain has each value that a template prints go through Plain: what others wrote ends up in all of them.
func makePlain(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			plain := parse.NewIdentifier("plain").SetPos(n.Pos)
			call := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{plain}}
			n.Pipe.Cmds = append(n.Pipe.Cmds, call)
		case *parse.IfNode:
			makePlain(n.List)
			makePlain(n.ElseList)
		case *parse.RangeNode:
			makePlain(n.List)
			makePlain(n.ElseList)
		case *parse.WithNode:
			makePlain(n.List)
			makePlain(n.ElseList)
		}
	}
}

// barWidth is the length of progress bars, in characters.
const barWidth = 30

// bar draws a share of a whole.
func bar(part, whole any) string {
	n := 0
	if w := number(whole); w > 0 {
		n = int(barWidth*min(1, max(0, number(part)/w)) + 0.5)
	}
	return strings.Repeat("█", n) + strings.Repeat("░", barWidth-n)
}

func percent(part, whole any) int { return int(100 * number(part) / max(1, number(whole))) }

// number is a number or an amount of money as templates hold them.
func number(v any) float64 {
	if n := reflect.ValueOf(v); n.CanInt() {
		return float64(n.Int())
	} else {
		return n.Float()
	}
}

func plainValue(v any) string {
	if raw, ok := v.(json.RawMessage); ok {
		return Plain(string(raw))
	}
	return Plain(fmt.Sprint(v))
}

// shown is how many entries of a list a line shows.
const shown = 5

// listed is how many lines of a list a text shows.
const listed = 10

// first is what of a list a text shows, one a line; more is how many others there are.
func first(list any) any {
	v := reflect.ValueOf(list)
	return v.Slice(0, min(v.Len(), listed)).Interface()
}

func more(list any) int { return max(0, reflect.ValueOf(list).Len()-listed) }

// A block is a title with lines below it.
type block struct {
	Title string
	Lines any
}

// nth is a number as an ordinal.
func nth(n int) string {
	switch {
	case n%10 == 1 && n%100 != 11:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2 && n%100 != 12:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3 && n%100 != 13:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// waited is a time that was waited, if it is worth a word.
func waited(sec float64) string {
	if sec < 0.005 {
		return ""
	}
	return Duration(sec)
}

// Some is a list on one line, not too much of it.
func Some(list any) string {
	all := reflect.ValueOf(list)
	var parts []string
	for i := range min(all.Len(), shown) {
		parts = append(parts, fmt.Sprint(all.Index(i)))
	}
	text := strings.Join(parts, ", ")
	if more := all.Len() - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Instant prints an instant for people: local time and its zone. Logs and JSON have UTC.
func Instant(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

func untilText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + Instant(t)
}

// Duration prints seconds as people say them: 0.25s, 7.5s, 3m05s, 2h10m. Nothing for an unknown time.
func Duration(sec float64) string {
	switch {
	case sec <= 0:
		return ""
	case sec < 0.005:
		return "<0.01s"
	case sec < 1:
		return fmt.Sprintf("%.2fs", sec)
	case sec < 59.95:
		return fmt.Sprintf("%.1fs", sec)
	case sec < 3599.5:
		s := int(sec + 0.5)
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	m := int(sec/60 + 0.5)
	return fmt.Sprintf("%dh%02dm", m/60, m%60)
}

// Count prints a number of things: 1 node, 2 nodes.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Titled is a title in brackets, behind a name.
func Titled(title string) string {
	if title == "" {
		return ""
	}
	return " (" + title + ")"
}

// AttemptText names an attempt behind a node; nothing where there was none.
func AttemptText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", n)
}

// Reason is a category and a message, or what there is of them.
func Reason(category, message string) string {
	return strings.TrimSuffix(strings.TrimPrefix(category+": "+message, ": "), ": ")
}

// ReasonText says why a run pauses, and at which node unless the message names it.
func ReasonText(pause machine.Pause, node, message string) string {
	reason := string(pause)
	if reason != "" && node != "" && !strings.Contains(message, node) {
		reason += " at " + node
	}
	return Reason(reason, message)
}

// ReasonInBrackets is ReasonText with the reason itself in brackets and what follows behind them.
func ReasonInBrackets(pause machine.Pause, node, message string) string {
	head, message, more := strings.Cut(ReasonText(pause, node, message), ": ")
	if !more {
		return "(" + head + ")"
	}
	return "(" + head + "): " + message
}

// shortDigest is as much of a digest as people compare.
func shortDigest(d string) string { return d[:min(12, len(d))] }

func usdRange(r [3]dag.USD) string {
	low, high := r[0].String(), r[2].String()
	if low == high { // as printed
		return "$" + low
	}
	return "$" + low + " to $" + high
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
