package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"dagrun.dev/internal/testing/exchange"
	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

type m = map[string]any

func send(t *testing.T, with m, answer exchange.Response, change ...func(*nodes.Task, *nodetest.Host)) (exchange.Request, *nodes.Task, *nodetest.Host, *nodes.Result, error) {
	t.Helper()
	s := exchange.Serve(t, "", answer)
	url, _ := with["url"].(string)
	with["url"] = s.URL + url
	task, host := nodetest.New(t, "http", with)
	for _, f := range change {
		f(task, host)
	}
	res, err := Kind.Run(context.Background(), task)
	requests := s.Requests()
	if len(requests) != 1 {
		t.Fatalf("%d requests", len(requests))
	}
	return requests[0], task, host, res, err
}

// What is sent: method, query, headers, secrets, body.
func TestRequest(t *testing.T) {
	secrets := func(task *nodes.Task, h *nodetest.Host) {
		h.Secrets = map[string]string{"key": "k1", "token": "t1"}
		h.Artifacts["page.html"], h.Files["in.csv"] = "<p>", "a,b"
	}
	text := "plain"
	for _, tt := range []struct {
		with           m
		method, target string
		header         map[string]string
		body           string
	}{
		{m{"url": "/x?a=1", "query": m{"b": 2, "c": "d e"}, "headers": m{"Accept": "text/x", "X-N": 5}}, "GET", "/x?a=1&b=2&c=d+e", map[string]string{"Accept": "text/x", "X-N": "5", "Content-Type": ""}, ""},
		{m{"method": "POST", "body": m{"json": m{"a": []int{1}}}, "secrets": m{"X-Key": "key"}, "bearer": "token"}, "POST", "/", map[string]string{"X-Key": "k1", "Authorization": "Bearer t1", "Content-Type": "application/json"}, `{"a":[1]}`},
		{m{"method": "PUT", "body": m{"text": text}}, "PUT", "/", map[string]string{"Content-Type": "text/plain; charset=utf-8"}, text},
		{m{"method": "PUT", "body": m{"artifact": "page.html", "type": "text/html"}}, "PUT", "/", map[string]string{"Content-Type": "text/html"}, "<p>"},
		{m{"method": "PATCH", "body": m{"file": "in.csv"}, "headers": m{"content-type": "text/csv"}}, "PATCH", "/", map[string]string{"Content-Type": "text/csv"}, "a,b"},
	} {
		got, _, _, res, err := send(t, tt.with, exchange.Response{Status: 204}, secrets)
		if err != nil {
			t.Fatal(err)
		}
		if got.Method != tt.method || got.Path != tt.target || string(got.Body) != tt.body {
			t.Errorf("%s %s %q, want %s %s %q", got.Method, got.Path, got.Body, tt.method, tt.target, tt.body)
		}
		for name, want := range tt.header {
			if got.Header.Get(name) != want {
				t.Errorf("header %s: %q, want %q", name, got.Header.Get(name), want)
			}
		}
		if res.Values["status"] != 204 {
			t.Errorf("values %v", res.Values)
		}
	}
}

// What becomes of the answer: an artifact or a kept file, and values of declared types.
func TestAnswer(t *testing.T) {
	doc := `{"id":"x1","n":3,"big":9223372036854775808,"f":1.5,"ok":true,"none":null,"list":[{"id":7}],"o":{"a":1}}`
	answer := exchange.Response{Status: 200, Headers: map[string]string{"content-type": "application/json; charset=utf-8"}, RawBody: doc}
	_, task, _, res, err := send(t, m{"to": "data/doc.json", "values": m{
		"id": m{"at": "id"}, "n": m{"at": "n", "type": "int"}, "f": m{"at": "f", "type": "number"}, "ok": m{"at": "ok", "type": "bool"},
		"first": m{"at": "list.0.id", "type": "int"}, "list": m{"at": "list", "type": "list"}, "o": m{"at": "o", "type": "map"}, "text": m{"at": "n"},
	}}, answer)
	if err != nil {
		t.Fatal(err)
	}
	if got := nodetest.Stage(t, task, res, "data/doc.json"); got != doc {
		t.Errorf("artifact %q", got)
	}
	got, _ := json.Marshal(res.Values)
	want := fmt.Sprintf(`{"bytes":%d,"content_type":"application/json","f":1.5,"first":7,"id":"x1","list":[{"id":7}],"n":3,"o":{"a":1},"ok":true,"status":200,"text":"3"}`, len(doc))
	if string(got) != want {
		t.Errorf("values\n%s\nwant\n%s", got, want)
	}
	for _, v := range []m{{"at": "nope"}, {"at": "none"}, {"at": "list.5"}, {"at": "id.x"}, {"at": "id", "type": "int"}, {"at": "f", "type": "int"}, {"at": "big", "type": "int"}, {"at": "o"}} {
		_, _, host, _, err := send(t, m{"values": m{"v": v}}, answer)
		if nodetest.Category(err) != "protocol" || host.Kept["response.txt"] != doc {
			t.Errorf("%v: %v; kept %q", v, err, host.Kept)
		}
	}
	_, _, host, _, err := send(t, m{}, exchange.Response{Status: 200, RawBody: "fine"})
	if err != nil || host.Kept["response.txt"] != "fine" {
		t.Errorf("%v, kept %v", err, host.Kept)
	}
}

// Numbers are whole however they are written, or are not; one document is one value.
func TestValuesOfStrangeDocuments(t *testing.T) {
	for doc, want := range map[string]string{
		`{"n":3}`: "3", `{"n":3.0}`: "3", `{"n":3e2}`: "300", `{"n":-0.0}`: "0", `{"n":9007199254740992}`: "9007199254740992", `{"n":1,"n":2}`: "2", " \ufeff": "protocol",
		`{"n":3.5}`: "protocol", `{"n":9007199254740993}`: "9007199254740993", `{"n":-9223372036854775808}`: "-9223372036854775808", `{"n":9223372036854775808}`: "protocol", `{"n":1e300}`: "protocol", `{"n":1e400}`: "protocol", `{"n":"3"}`: "protocol", `{"N":3}`: "protocol",
		`{"n":1}{"n":2}`: "protocol", `{"n":1}` + "\n" + `{"n":2}`: "protocol", `{"n":1}<html>`: "protocol", `{"n":1}]`: "protocol", `{"n":1}` + " \r\n": "1", `{"n":1`: "protocol", ``: "protocol",
	} {
		_, _, _, res, err := send(t, m{"values": m{"v": m{"at": "n", "type": "int"}}}, exchange.Response{Status: 200, RawBody: doc})
		got := nodetest.Category(err)
		if err == nil {
			got = fmt.Sprint(res.Values["v"])
		}
		if got != want {
			t.Errorf("%q: %s, want %s (%v)", doc, got, want, err)
		}
	}
}

// Text that is no Unicode is refused where it is read, and nowhere else.
func TestValuesThatAreNoText(t *testing.T) {
	doc := `{"half":"\ud800","list":["\udc00"],"mark":"\ufffd","plain":"\ud83d\ude00"}`
	for at, want := range map[string]string{"half": "protocol", "list.0": "protocol", "plain": ""} {
		_, _, _, _, err := send(t, m{"values": m{"v": m{"at": at}}}, exchange.Response{Status: 200, RawBody: doc})
		if nodetest.Category(err) != want {
			t.Errorf("%s: %v", at, err)
		}
	}
	_, _, _, res, err := send(t, m{"values": m{"v": m{"at": "n", "type": "int"}}}, exchange.Response{Status: 200, RawBody: `{"n":1,"n":2}`})
	if err != nil || len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], `"n" appears twice`) {
		t.Errorf("a name twice: %+v %v", res, err)
	}
	_, _, _, _, err = send(t, m{"values": m{"v": m{"at": "mark"}}}, exchange.Response{Status: 200, RawBody: `{"mark":"\ufffd"}`})
	if err != nil {
		t.Error(err)
	}
}

// Failures by status, and what the spec expects instead. R-1
func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		status   int
		expect   []int
		category string
		final    bool
	}{
		{200, nil, "", false}, {299, nil, "", false}, {404, []int{200, 404}, "", false}, {301, []int{301}, "", false},
		{404, nil, "config", false}, {500, nil, "transient", false}, {422, nil, "protocol", true}, {201, []int{200}, "protocol", true}, {401, nil, "auth", false},
	} {
		with := m{"method": "POST"}
		if tt.expect != nil {
			with["expect"] = tt.expect
		}
		_, _, _, _, err := send(t, with, exchange.Response{Status: tt.status, RawBody: "because"})
		var e *nodes.Error
		errors.As(err, &e)
		if nodetest.Category(err) != tt.category || e != nil && (e.Permanent != tt.final || !strings.Contains(e.Error(), fmt.Sprint(tt.status))) {
			t.Errorf("%d, expected %v: %v, want %q %v", tt.status, tt.expect, err, tt.category, tt.final)
		}
	}
	_, _, _, _, err := send(t, m{}, exchange.Response{Status: 503, Headers: map[string]string{"retry-after": "9"}})
	var e *nodes.Error
	if !errors.As(err, &e) || e.RetryAfter != 9*time.Second {
		t.Errorf("retry after: %v", err)
	}
}

// An answer that was lost may have had its effect: B-3.
func TestLostAnswerIsUnknown(t *testing.T) {
	for _, r := range []exchange.Response{{End: "drop-after-request"}, {Status: 200, Headers: map[string]string{"content-length": "50"}, RawBody: "x", End: "close"}, {Status: 504}} {
		_, _, _, _, err := send(t, m{"method": "POST", "body": m{"text": "x"}}, r)
		var e *nodes.Error
		if !errors.As(err, &e) || !e.Unknown {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// A long answer costs no memory; one that is too long is refused.
func TestLongAnswer(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 4<<16) // 4 MB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, task, _, res, err := send(t, m{"to": "long.bin"}, exchange.Response{Status: 200, RawBody: long})
	runtime.ReadMemStats(&after)
	if err != nil || res.Values["bytes"] != int64(len(long)) {
		t.Fatalf("%v %v", err, res)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 5<<20 { // the server's own copy is 4 MB
		t.Errorf("%d bytes were allocated", grown)
	}
	if got := nodetest.Stage(t, task, res, "long.bin"); got != long {
		t.Error("another content")
	}
	_, _, _, _, err = send(t, m{"maxMB": 1}, exchange.Response{Status: 200, RawBody: long})
	if nodetest.Category(err) != "output_limit" || !strings.Contains(err.Error(), "longer than 1 MB") {
		t.Errorf("%v", err)
	}
}

// What the plan knows: effects, outputs, mistakes. B-3, B-7
func TestDescribe(t *testing.T) {
	for _, tt := range []struct{ with, effect, problems string }{
		{`{"url":"https://x.test/"}`, "pure", ""},
		{`{"url":"https://x.test/","method":"HEAD"}`, "pure", ""},
		{`{"url":"https://x.test/","method":"DELETE"}`, "once", ""},
		{`{"url":"${nodes.a.out.url}","method":"POST","body":{"json":null}}`, "once", ""},
		{`{"url":"x.test","body":{"text":"","file":"f"}}`, "pure", "url body body"},
		{`{"url":"https://u:p@x.test/","headers":{"authorization":"x"},"secrets":{"Authorization":"a"},"bearer":"b","values":{"status":{"at":"s"}}}`, "pure", "url values.status secrets.Authorization bearer"},
	} {
		tr, err := Kind.Describe(json.RawMessage(tt.with))
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, p := range tr.Problems {
			paths = append(paths, p.Path)
		}
		if got := strings.Join(paths, " "); tr.Effect != tt.effect || got != tt.problems {
			t.Errorf("%s: %s %q (%v), want %s %q", tt.with, tr.Effect, got, tr.Problems, tt.effect, tt.problems)
		}
	}
	tr, _ := Kind.Describe(json.RawMessage(`{"url":"https://x.test/","to":"a","body":{"artifact":"b"},"method":"PUT","secrets":{"K":"s"},"bearer":"s","values":{"v":{"at":"v","type":"list"}}}`))
	if fmt.Sprint(tr.Reads, tr.Writes, tr.Secrets, tr.Outputs) != "[b] [a] [s] map[bytes:int content_type:string status:int v:list]" {
		t.Errorf("%+v", tr)
	}
}
