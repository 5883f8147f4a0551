package cli

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
	"dagrun.dev/internal/tree"
)

// evil is a text that would clear the screen and ring the bell.
const evil = "\x1b[2J\x07"

// spoil fills all texts that a view holds with evil ones, lists and maps with one element.
func spoil(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(evil)
	case reflect.Pointer:
		if v.CanSet() && depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			spoil(v.Elem(), depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				spoil(f, depth)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 && depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			spoil(v.Index(0), depth-1)
		}
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String && depth > 0 {
			of := reflect.New(v.Type().Elem()).Elem()
			spoil(of, depth-1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf(evil).Convert(v.Type().Key()), of)
		}
	}
}

// B-10: whatever the names in it are, no text of a command acts on a terminal; each kind that has no template is named.
func TestTextsArePlain(t *testing.T) {
	by := map[string]bool{"plan": true, "graph": true, "output": true, "cost": true, "event": true,
		"selftest": true, "explained": true, "error": true}
	for _, e := range envelopes {
		if by[e.kind] {
			continue
		}
		v := reflect.New(bare(e.of))
		spoil(v.Elem(), 8)
		for _, form := range formsOf(e.kind) {
			var b bytes.Buffer
			if err := writeView(&b, v.Interface(), form); err != nil {
				t.Errorf("%s: %v", form, err)
			} else if strings.ContainsAny(b.String(), "\x1b\x07") {
				t.Errorf("%s: a control character reached the display:\n%q", form, b.String())
			} else if shown := report.Plain(evil); e.kind != "version" && !strings.Contains(b.String(), shown) {
				t.Errorf("%s shows nothing:\n%s", form, b.String())
			}
		}
	}
}

// formsOf are the templates of a kind.
func formsOf(kind string) []string {
	if kind == "end" {
		return []string{"end", "short", "nothing"}
	}
	return []string{kind}
}

// B-10: nor does a warning, a line beside the progress, or what ends a command.
func TestMessagesArePlain(t *testing.T) {
	var b bytes.Buffer
	c := &cobra.Command{}
	c.SetErr(&b)
	warn(c, "a file named "+evil)
	(&session{cmd: c}).note("a process named " + evil)
	printError(&b, errors.New("one named "+evil+"\nand another"))
	printError(&b, tree.Diagnostics{{Pos: tree.Pos{File: tree.FileOf(evil)}, Path: evil, Text: evil}})
	if got := b.String(); strings.ContainsAny(got, "\x1b\x07") || strings.Count(got, "\n") != 5 {
		t.Errorf("printed\n%q", got)
	}
}
