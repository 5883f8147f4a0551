package report

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	"dagrun.dev/dag/machine"
)

//go:embed views.tmpl
var viewsText string

// views are the templates of the texts, by name. They are read when the first is needed.
var views = sync.OnceValue(func() *template.Template { return Templates("") })

// Templates are those of the views here and further ones, which may use the same functions and each other. Whatever
// value one of them prints is made safe for a terminal.
func Templates(further string) *template.Template {
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
		"numbered": numbered,
		"undid":    undidText,
		"options":  func(q machine.EscalationOpenedBody) string { return Options(&q) },
		"entries":  func(title string, lines any) block { return block{title, lines} },
		"nth":      nth,
		"size":     SizeText,
	}).Parse(viewsText + further))
	for _, one := range t.Templates() {
		makePlain(one.Root)
	}
	return t
}

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
