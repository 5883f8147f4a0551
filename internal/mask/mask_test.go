package mask

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// block is a secret of four lines of 40 letters, as keys are.
var block = strings.Join([]string{
	"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj", "AgEAAoIBAQC7VJTUt9Us8cKjMzEfYyjiWA4R4LDd",
	"qKQmFGgFL8Zs2cVQz1hJq3yYw5bX0dTn6eRrUuOp", "ZyXwVuTsRqPoNmLkJiHgFeDcBa98765432101234",
}, "\n")

var secrets = map[string]string{
	"a token":         "sk-ant-api03-Zx_9yQ-77",
	"special letters": `pa"ss w/o<r>d&'é` + "\t😀%41+=;",
	"backslashes":     `\\server\new\table\`,
	"lines":           block,
	"written lines":   strings.ReplaceAll(block, "\n", `\n`),
	"line ends":       block + "\r\n",
}

// forms are the ways in which programs write a text inside another format.
var forms = map[string]func(string) string{
	"as it is":        func(s string) string { return s },
	"JSON":            inJSON,
	"JSON in JSON":    func(s string) string { return inJSON(inJSON(s)) },
	"JSON thrice":     func(s string) string { return inJSON(inJSON(inJSON(s))) },
	"JSON of PHP":     func(s string) string { return strings.ReplaceAll(inJSON(s), "/", `\/`) },
	"JSON, all \\u":   func(s string) string { return unicodes(s, `\u%04x`) },
	"JSON, upper \\u": func(s string) string { return unicodes(s, `\u%04X`) },
	"JSON as text": func(s string) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(s)
		return strings.Trim(strings.TrimSpace(b.String()), `"`)
	},
	"Go":               func(s string) string { q := strconv.Quote(s); return q[1 : len(q)-1] },
	"Go, ASCII":        func(s string) string { q := strconv.QuoteToASCII(s); return q[1 : len(q)-1] },
	"query":            url.QueryEscape,
	"path":             url.PathEscape,
	"query, lower":     func(s string) string { return lowerHex(url.QueryEscape(s)) },
	"query, all":       func(s string) string { return percents(s) },
	"query in a query": func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
	"query in JSON":    func(s string) string { return inJSON(url.QueryEscape(s)) },
	"HTML":             html.EscapeString,
	"HTML in JSON":     func(s string) string { return inJSON(html.EscapeString(s)) },
}

func inJSON(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw[1 : len(raw)-1])
}

func unicodes(s, format string) string {
	var b strings.Builder
	for _, v := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, format, v)
	}
	return b.String()
}

func percents(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

var hexes = regexp.MustCompile("%[0-9A-F]{2}")

func lowerHex(s string) string { return hexes.ReplaceAllStringFunc(s, strings.ToLower) }

// A secret is masked in every form, whole and line by line (W-11, e-work/14).
func TestForms(t *testing.T) {
	for name, secret := range secrets {
		var m Mask
		m.Add(secret)
		for form, write := range forms {
			if got := m.Text("x: " + write(secret) + " ;"); got != "x: "+Shown+" ;" {
				t.Errorf("%s, %s: %q", name, form, got)
			}
			for _, line := range strings.Split(block, "\n") {
				if got := m.Text(write("  " + line + "!")); strings.Contains(name, "line") && strings.Contains(got, line[3:9]) {
					t.Errorf("%s, a line, %s: %q", name, form, got)
				}
			}
		}
	}
}

// A secret is masked in base64 wherever it begins, in both alphabets, with padding and without, in lines, and in
// JSON or an address on top. A few bits of what stands beside it are left.
func TestBase64(t *testing.T) {
	for name, secret := range secrets {
		var m Mask
		m.Add(secret)
		for before := range 7 {
			for after := range 4 {
				text := strings.Repeat("u", before) + secret + strings.Repeat("z", after)
				for coding, e := range map[string]*base64.Encoding{"std": base64.StdEncoding, "raw": base64.RawStdEncoding, "url": base64.URLEncoding, "raw url": base64.RawURLEncoding} {
					plain := e.EncodeToString([]byte(text))
					most := (before+2)/3*4 + len(Shown) + (after+5)/3*4
					for how, got := range map[string]string{
						"as it is": m.Text(plain), "in JSON": m.Text(inJSON(plain)), "in a query": m.Text(url.QueryEscape(plain)),
						"at 76": m.Text(wrap(plain, 76, "\n")), "at 64": m.Text(wrap(plain, 64, "\r\n")), "in YAML": m.Text(wrap(plain, 76, "\n    ")),
						"at 76, in JSON": m.Text(inJSON(wrap(plain, 76, "\n"))),
					} {
						if got = strings.Join(strings.Fields(got), ""); strings.Count(got, Shown) != 1 || len(got) > most+12 {
							t.Errorf("%s, %d bytes before, %d behind, %s, %s: %q", name, before, after, coding, how, got)
						}
					}
				}
			}
		}
	}
}

func wrap(s string, width int, end string) string {
	var b strings.Builder
	for len(s) > width {
		b.WriteString(s[:width] + end)
		s = s[width:]
	}
	return b.String() + s
}

// What is no secret stays: short words, lines that are too short, and text that only begins like one.
func TestOrdinaryTextStays(t *testing.T) {
	var none Mask
	none.Add("abc")
	none.Add("\n\n")
	var m Mask
	m.Add("sk-ant-api03-Zx_9yQ-77")
	m.Add("{\n\"key\": 1\n}")
	for _, s := range []string{"abc", "sk-ant-api03-Zx_9yQ-7", "sk-ant-api03-...", "{}", `\u00`, "%2", "&lt", `\\\\\\\\\\\\`, "", "+"} {
		if got := none.Text(s) + m.Text(s); got != s+s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// Secrets that overlap in a text leave nothing of each other.
func TestOverlap(t *testing.T) {
	var m Mask
	m.Add("first-half-and")
	m.Add("and-second-half")
	if got := m.Text("x first-half-and-second-half y"); got != "x "+Shown+" y" {
		t.Error(got)
	}
}

// What is left of a secret where a message was cut to size is masked: at both ends, and at dots.
func TestCutMessages(t *testing.T) {
	const secret = "sk-ant-api03-Zx_9yQ-77"
	var m Mask
	m.Add(secret)
	for s, want := range map[string]string{
		"the key is " + secret[:12]:                                        "the key is " + Shown,
		"the key is " + secret[:10] + "... (exit 1)":                       "the key is " + Shown + "... (exit 1)",
		secret[9:] + " is wrong":                                           Shown + " is wrong",
		"stderr: ..." + secret[5:] + " is wrong":                           "stderr: ..." + Shown + " is wrong",
		"k " + secret[:9] + "\n[... 9 bytes left out ...]\n" + secret[13:]: "k " + Shown + "\n[... 9 bytes left out ...]\n" + Shown,
		"the key is sk-ant":                                                "the key is sk-ant",
		secret[9:] + secret[:9] + " and more":                              Shown + secret[:9] + " and more",
	} {
		if got := m.Message(s); got != want {
			t.Errorf("%q became %q, want %q", s, got, want)
		}
	}
}

// A message may be cut within an escape.
func TestCutWithinAnEscape(t *testing.T) {
	const secret = `qK"mF&gF/8Zs2c<Qz1hJq3y&w5bX0dTn6eR\u/p`
	var m Mask
	m.Add(secret)
	for name, form := range forms {
		if strings.Contains(name, "base64") {
			continue
		}
		written, least := form(secret), form(secret[:leastCut])
		for cut := len(least) + 1; cut < len(written); cut++ {
			for _, dots := range []string{"", "..."} {
				if got := m.Message("key <" + written[:cut] + dots); strings.Contains(got, least) {
					t.Errorf("%s: %q", name, got)
				}
			}
		}
	}
}

type closing struct{ bytes.Buffer }

func (*closing) Close() error { return nil }

// A secret is masked however its bytes are split between writes (B-14), and nothing is lost.
func TestWriter(t *testing.T) {
	var m Mask
	var text strings.Builder
	for _, secret := range secrets {
		m.Add(secret)
	}
	for _, name := range []string{"a token", "special letters", "backslashes", "lines"} {
		for _, form := range []string{"as it is", "JSON in JSON", "query in a query", "HTML"} {
			text.WriteString("<" + forms[form](secrets[name]) + "> " + secrets[name][:7])
		}
		text.WriteString(wrap(base64.StdEncoding.EncodeToString([]byte("me:"+secrets[name]+"@")), 76, "\n"))
	}
	whole := text.String()
	want := m.Text(whole)
	if strings.Count(want, Shown) != 20 {
		t.Fatalf("%d masks in %q", strings.Count(want, Shown), want)
	}
	check := func(how string, parts ...string) {
		t.Helper()
		var out closing
		w := m.Writer(&out)
		for _, part := range parts {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := w.Close(); err != nil || out.String() != want {
			t.Fatalf("%s: %v\n%q, want\n%q", how, err, out.String(), want)
		}
	}
	for cut := range len(whole) {
		check(fmt.Sprint("cut at ", cut), whole[:cut], whole[cut:])
	}
	check("byte by byte", strings.Split(whole, "")...)
}

// A JSON value stays one, of the same shape, whatever stands in its strings; a long number that holds a secret becomes
// a string.
func TestJSON(t *testing.T) {
	var m Mask
	if got := string(m.JSON(json.RawMessage(`{"a": 1e2}`))); got != `{"a": 1e2}` {
		t.Error("without secrets:", got)
	}
	m.Add("nbcd-1")
	m.Add("12345678")
	for in, want := range map[string]string{
		`{"b":"x\nbcd-1","a":1e400}`:       `{"b":"x\nbcd-1","a":1e400}`,
		`{"b":"xnbcd-1","a":1e400}`:        `{"a":1e400,"b":"x[secret]"}`,
		`{"nbcd-1":["nbcd-1",null,true]}`:  `{"[secret]":["[secret]",null,true]}`,
		`[12345678, 912345678.5, 1234567]`: `["[secret]","[secret]",1234567]`,
	} {
		if got := string(m.JSON(json.RawMessage(in))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

// What is masked in a file that holds JSON stays JSON: no half of an escaped character is left before a secret (W-11).
func TestEscapesStayWhole(t *testing.T) {
	var m Mask
	m.Add("nbcd-1")
	m.Add(`wxy\`)
	for in, want := range map[string]string{
		`"a\nbcd-1"`: `"a[secret]"`, `"a\\nbcd-1"`: `"a\\[secret]"`, `"awxy\\\n"`: `"a[secret]\n"`, `nbcd-1\nbcd-1`: Shown + Shown,
	} {
		for cut := range len(in) {
			var out closing
			w := m.Writer(&out)
			for _, part := range []string{in[:cut], in[cut:]} {
				if _, err := w.Write([]byte(part)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil || out.String() != want {
				t.Errorf("%s, cut at %d: %v, %s, want %s", in, cut, err, out.String(), want)
			}
		}
	}
}

// A file is rewritten only when it holds a secret, and keeps its mode.
func TestFile(t *testing.T) {
	var m Mask
	m.Add(block)
	path := filepath.Join(t.TempDir(), "f")
	for content, want := range map[string]string{
		"x " + block + " y": "x [secret] y",
		"nothing":           "nothing",
		strings.Repeat("line\n", 20000) + block[:40] + "\n" + strings.Repeat("line\n", 20000): strings.Repeat("line\n", 20000) + "[secret]\n" + strings.Repeat("line\n", 20000),
	} {
		if err := os.WriteFile(path, []byte(content), 0o750); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Stat(path)
		if err := m.File(path); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		after, _ := os.Stat(path)
		if err != nil || string(got) != want || after.Mode() != before.Mode() || os.SameFile(before, after) != (content == want) {
			t.Errorf("%v, %v, %d bytes: %.80q", err, after.Mode(), len(got), got)
		}
	}
	if err := m.File(filepath.Join(path, "none")); err == nil {
		t.Error("a file that is not there was masked")
	}
}

// Whatever stands in a secret and in a text, a writer does what Text does, and no secret is left as it is.
func FuzzWriter(f *testing.F) {
	f.Add(`a\"b%25c`, `x a\\\"b%2525c y`, uint8(3))
	f.Add("ABCDEFGH\nIJKLMNOPQ", "QUJDREVGR0g&amp;\nIJKLMNOPQ", uint8(1))
	f.Fuzz(func(t *testing.T, secret, text string, size uint8) {
		if len(secret) > 100 || len(text) > 200 {
			return // many small writes of text that repeats itself take the square of its length
		}
		var m Mask
		m.Add(secret)
		text += secret + text
		want := m.Text(text)
		for _, part := range strings.Split(want, Shown) {
			if len(secret) >= shortest && strings.Contains(part, secret) {
				t.Fatalf("%q stays in %q", secret, want)
			}
		}
		m.Message(text)
		var out closing
		w := m.Writer(&out)
		for rest := []byte(text); len(rest) > 0; {
			n := min(len(rest), int(size)+1)
			if _, err := w.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil || out.String() != want {
			t.Fatalf("%v: %q, want %q", err, out.String(), want)
		}
	})
}

func BenchmarkText(b *testing.B) {
	var line [400]byte
	for i := range line {
		line[i] = `{"type":"text","delta":"<p class=\"x\">Some ordinary words\n about keys & values of 5% and sk-ant models</p>"} `[i%107]
	}
	text := strings.Repeat(string(line[:])+"\n", 2500)
	for name, add := range map[string][]string{"none": nil, "token": {secrets["a token"]}, "lines": {block}} {
		var m Mask
		for _, s := range add {
			m.Add(s)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.Text(text)
			}
		})
	}
}
