package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

// A variant is one case of testdata/variants.txt.
type variant struct{ name, parse, out, end, want string }

var variantHead = regexp.MustCompile(`^== (.*?) \| (\S+?)( quoted)? \| (.*) \| ([^|]+)$`)

func readVariants(t *testing.T) (list []variant) {
	t.Helper()
	b, err := os.ReadFile("testdata/variants.txt")
	if err != nil {
		t.Fatal(err)
	}
	escaped := strings.NewReplacer("@PAGE", strings.ReplaceAll(page, `"`, `\"`), "@RAW", page)
	for _, text := range strings.Split("\n"+string(b), "\n== ")[1:] {
		head, out, _ := strings.Cut(text, "\n")
		f := variantHead.FindStringSubmatch("== " + head)
		if f == nil {
			t.Fatalf("not the head of a case: %s", head)
		}
		if out = strings.TrimSuffix(out, "\n"); f[3] != "" {
			if out, err = strconv.Unquote(out); err != nil {
				t.Fatalf("%s: %v", f[1], err)
			}
		}
		list = append(list, variant{name: f[1], parse: f[2], out: escaped.Replace(out), end: f[4], want: f[5]})
	}
	return list
}

// C-11, R-1, R-3: every shape has the outcome that is stated.
func TestVariants(t *testing.T) {
	list := readVariants(t)
	if len(list) < 70 {
		t.Fatalf("only %d cases", len(list))
	}
	for _, v := range list {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			with := printing(v.parse, "")
			file := t.TempDir() + "/out" // an environment holds no NUL
			if err := os.WriteFile(file, []byte(v.out), 0o600); err != nil {
				t.Fatal(err)
			}
			with["argv"] = []string{"/bin/sh", "-c", `cat > /dev/null; cat "$FILE"; ` + v.end}
			with["env"] = m{"FILE": file, "OUT": page}
			if v.parse == "json-lines" {
				with["command"] = m{"parse": v.parse, "field": "t"}
			}
			task, host := nodetest.New(t, "agent", with)
			res, err := Kind.Run(context.Background(), task)
			if got := outcome(res, err); got != v.want {
				t.Errorf("%s, want %s (%v)", got, v.want, err)
			}
			if err != nil && strings.TrimSpace(v.out) != "" && host.Kept["raw-output.txt"] == "" {
				t.Errorf("the output is not kept: %v", host.Kept) // S-10
			}
		})
	}
}

// outcome is an attempt's end in the words of variants.txt.
func outcome(res *nodes.Result, err error) string {
	var words []string
	var e *nodes.Error
	switch {
	case errors.As(err, &e) && e.Permanent:
		words = append(words, e.Category, "final")
	case err != nil:
		words = append(words, nodetest.Category(err))
	case len(res.Warnings) > 0:
		words = append(words, "ok_warn")
	default:
		words = append(words, "ok")
	}
	if res != nil && res.CostUSD != nil {
		words = append(words, fmt.Sprintf("$%v", *res.CostUSD))
	}
	if res != nil && res.Usage != (nodes.Usage{}) {
		u := res.Usage
		words = append(words, fmt.Sprintf("%d+%d+%d+%d", u.Input, u.CacheRead, u.CacheWrite, u.Output))
	}
	return strings.Join(words, " ")
}
