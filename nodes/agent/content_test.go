package agent

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"strings"
	"testing"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

// asked returns what a server was sent, with the marks written short.
func asked(t *testing.T, with m, change ...func(*nodes.Task, *nodetest.Host)) string {
	t.Helper()
	answer := goodMessage
	switch {
	case with["api"] == "responses":
		answer = goodResponse
	case with["provider"] == "openai":
		answer = goodChat
	}
	s, _, _, err := askAPI(t, with, answer, change...)
	if err != nil {
		t.Fatal(err)
	}
	var body struct{ System, Messages, Input, Instructions json.RawMessage }
	if err := json.Unmarshal(s.Requests()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	text := string(body.System) + string(body.Instructions) + string(body.Messages) + string(body.Input)
	return strings.NewReplacer(`cache_control:{type:ephemeral}`, "MARK", `prompt_cache_breakpoint:{mode:explicit}`, "MARK").Replace(strings.NewReplacer(`\"`, "", `"`, "").Replace(text))
}

// blocks are sent with marks at the borders, at most four, where they save most.
func TestMarks(t *testing.T) {
	const three = "one\n{BORDER}\ntwo\n{BORDER}\nown"
	for _, tt := range []struct {
		name string
		with m
		want string
	}{
		{"no border, no mark", m{"provider": "anthropic", "prompt": m{"text": "own"}}, `[{content:own,role:user}]`},
		{"borders", m{"provider": "anthropic", "prompt": m{"text": three}},
			`[{content:[{MARK,text:one\n,type:text},{MARK,text:two\n,type:text},{text:own,type:text}],role:user}]`},
		{"system text is the first block", m{"provider": "anthropic", "system": m{"text": "be"}, "prompt": m{"text": three}},
			`[{MARK,text:be,type:text}][{content:[{MARK,text:one\n,type:text},{MARK,text:two\n,type:text},{text:own,type:text}],role:user}]`},
		{"system text alone, when asked for", m{"provider": "anthropic", "system": m{"text": "be"}, "cache": "5m", "prompt": m{"text": "own"}},
			`[{MARK,text:be,type:text}][{content:[{text:own,type:text}],role:user}]`},
		{"off", m{"provider": "anthropic", "cache": "off", "system": m{"text": "be"}, "prompt": m{"text": three}}, `be[{content:one\ntwo\nown,role:user}]`},
		{"an hour", m{"provider": "anthropic", "cache": "1h", "prompt": m{"text": "one\n{BORDER}\nown"}},
			`[{content:[{cache_control:{ttl:1h,type:ephemeral},text:one\n,type:text},{text:own,type:text}],role:user}]`},
		{"more borders than marks", m{"provider": "anthropic", "prompt": m{"text": "11\n{BORDER}\n2\n{BORDER}\n333\n{BORDER}\n4444\n{BORDER}\n55\n{BORDER}\nown"}},
			`[{content:[{MARK,text:11\n,type:text},{text:2\n,type:text},{MARK,text:333\n,type:text},{MARK,text:4444\n,type:text},{MARK,text:55\n,type:text},{text:own,type:text}],role:user}]`},
		{"chat keeps by itself", m{"provider": "openai", "system": m{"text": "be"}, "prompt": m{"text": three}}, `[{content:be,role:system},{content:one\ntwo\nown,role:user}]`},
		{"chat with marks", m{"provider": "openai", "cache": "30m", "prompt": m{"text": "one\n{BORDER}\nown"}},
			`[{content:[{MARK,text:one\n,type:text},{text:own,type:text}],role:user}]`},
		{"responses with marks", m{"provider": "openai", "api": "responses", "cache": "30m", "system": m{"text": "be"}, "prompt": m{"text": "one\n{BORDER}\nown"}},
			`be[{content:[{MARK,text:one\n,type:input_text},{text:own,type:input_text}],role:user}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.with["model"] = "model-a"
			if got := asked(t, tt.with); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// requests that begin alike go to one server of OpenAI; what the API's owner does not promise is not sent to
// others.
func TestPromptCacheKey(t *testing.T) {
	key := func(with m) string {
		q := &question{set: &settings{Provider: "openai", API: "chat", BaseURL: str(with["baseURL"]), Cache: str(with["cache"])}, blocks: []string{"one\n", str(with["own"])}}
		if with["own"] == "no border" {
			q.blocks = []string{q.prompt()}
		}
		body := openai(q.set.API).body(q, &content{parts: []contentPart{{text: q.prompt()}}})
		return str(body["prompt_cache_key"])
	}
	first := key(m{"own": "a"})
	if len(first) < 20 || first != key(m{"own": "b"}) {
		t.Errorf("keys %q %q", first, key(m{"own": "b"}))
	}
	for _, with := range []m{{"own": "a", "baseURL": "http://x.test"}, {"own": "a", "cache": "off"}, {"own": "no border"}} {
		if got := key(with); got != "" {
			t.Errorf("%v: key %q", with, got)
		}
	}
}

func str(x any) string { s, _ := x.(string); return s }

// picture is not compressed: its size is that of its pixels.
func picture(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	e := png.Encoder{CompressionLevel: png.NoCompression}
	if err := e.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// T3: what a tool would read goes into the request.
func TestGivenFiles(t *testing.T) {
	var zipped bytes.Buffer
	z := zip.NewWriter(&zipped)
	for _, name := range []string{"b.png", "a.png", "scroll.png"} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(picture(t, 1, 1)))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	give := func(_ *nodes.Task, h *nodetest.Host) {
		h.Artifacts = map[string]string{"page.html": "<p>\n", "pictures.zip": zipped.String()}
	}
	with := func(provider, api string) m {
		return m{"provider": provider, "api": api, "model": "model-a", "prompt": m{"text": "look\n{BORDER}\nown"}, "give": []m{
			{"artifact": "page.html"}, {"artifact": "pictures.zip", "unpack": true, "send": []string{"a*", "[b].png"}},
			{"artifact": "none.zip", "unpack": true, "optional": true}}}
	}
	const png = "iVBORw0KGgo"
	for _, tt := range []struct{ provider, api, want string }{
		{"anthropic", "chat", `[{content:[{MARK,text:look\n,type:text},{text:\u003cfile name=page.html\u003e\n\u003cp\u003e\n\u003c/file\u003e\n,type:text},` +
			`{text:pictures/a.png:,type:text},{source:{data:PNG,media_type:image/png,type:base64},type:image},` +
			`{text:pictures/b.png:,type:text},{MARK,source:{data:PNG,media_type:image/png,type:base64},type:image},{text:own,type:text}],role:user}]`},
		{"openai", "chat", `{image_url:{url:data:image/png;base64,PNG},type:image_url},{text:own,type:text}],role:user}]`},
		{"openai", "responses", `{image_url:data:image/png;base64,PNG,type:input_image},{text:own,type:input_text}],role:user}]`},
	} {
		got := asked(t, with(tt.provider, tt.api), give)
		for {
			before, rest, ok := strings.Cut(got, png)
			if !ok {
				break
			}
			got = before + "PNG" + rest[strings.IndexAny(rest, ",}"):]
		}
		if !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s %s: got %s\nwant %s", tt.provider, tt.api, got, tt.want)
		}
	}
}

// T3: what the service would refuse is said before anything is sent.
func TestGivenFilesThatCannotBeSent(t *testing.T) {
	for _, tt := range []struct{ provider, name, content, category, message string }{
		{"anthropic", "big.png", picture(t, 2100, 2100), "input_too_big", "give: the picture big.png is 5.6 MB in base64; provider anthropic takes at most 5 MB a picture"},
		{"openai", "big.png", picture(t, 2100, 2100), "", ""},
		{"anthropic", "wide.png", picture(t, 8001, 1), "input_too_big", "give: the picture wide.png has a side of 8001 pixels; provider anthropic takes at most 8000 where there are 1 pictures"},
		{"anthropic", "wide.png", picture(t, 8000, 1), "", ""},
		{"anthropic", "a.bin", "\x00\xff\x01", "config", "give: a.bin is neither text nor"},
		{"openai", "big.txt", strings.Repeat("text ", 11<<20), "input_too_big", "give: the files are 55.0 MB; a request to provider openai holds at most 48 MB"},
	} {
		answer := goodMessage
		if tt.provider == "openai" {
			answer = goodChat
		}
		s, _, host, err := askAPI(t, m{"provider": tt.provider, "model": "model-a", "give": []m{{"artifact": tt.name}}}, answer, func(_ *nodes.Task, h *nodetest.Host) {
			h.Artifacts = map[string]string{tt.name: tt.content}
		})
		if nodetest.Category(err) != tt.category || err != nil && !strings.Contains(err.Error(), tt.message) {
			t.Errorf("%s %s: %v", tt.provider, tt.name, err)
		}
		if (len(s.Requests()) == 0) != (err != nil) {
			t.Errorf("%s %s: %d requests, facts %s", tt.provider, tt.name, len(s.Requests()), host.Types())
		}
	}
}

// T3: many pictures must be small, and not too many.
func TestManyGivenPictures(t *testing.T) {
	for _, tt := range []struct {
		pictures, width int
		message         string
	}{
		{20, 2001, ""}, {21, 2000, ""}, {100, 1, ""},
		{21, 2001, "has a side of 2001 pixels; provider anthropic takes at most 2000 where there are 21 pictures"},
		{101, 1, "give: 101 pictures; a request to provider anthropic holds at most 100"},
	} {
		var give []m
		artifacts := map[string]string{}
		for i := range tt.pictures {
			name := fmt.Sprintf("p%03d.png", i)
			artifacts[name] = picture(t, tt.width, 1)
			give = append(give, m{"artifact": name})
		}
		_, _, _, err := askAPI(t, m{"provider": "anthropic", "model": "model-a", "give": give}, goodMessage, func(_ *nodes.Task, h *nodetest.Host) { h.Artifacts = artifacts })
		if (err == nil) != (tt.message == "") || err != nil && !strings.Contains(err.Error(), tt.message) {
			t.Errorf("%d pictures of %d pixels: %v", tt.pictures, tt.width, err)
		}
	}
}

// What a provider does not keep is a mistake of the plan. A-4
func TestCacheTimes(t *testing.T) {
	for _, tt := range []struct{ provider, cache, want string }{
		{"anthropic", "5m", ""}, {"anthropic", "1h", ""}, {"openai", "30m", ""}, {"openai", "off", ""},
		{"anthropic", "30m", "provider anthropic keeps nothing for 30m; want one of 5m, 1h, off"},
		{"claude", "5m", "provider claude cannot be told what to keep; providers that can: anthropic, openai"},
	} {
		with, _ := json.Marshal(m{"provider": tt.provider, "model": "a", "cache": tt.cache, "prompt": m{"text": "x"}})
		tr, err := Kind.Describe(with)
		got := ""
		for _, p := range tr.Problems {
			got += p.Text
		}
		if err != nil || got != tt.want {
			t.Errorf("%s %s: %q %v", tt.provider, tt.cache, got, err)
		}
	}
}

// T3: who writes no files gives its report as the answer, before the block of a shaped one; nothing is missed.
func TestReportOfService(t *testing.T) {
	answer := sse(`{"choices":[{"index":0,"delta":{"content":"# Report\n\nGood.\n\n`+"```json\\n{\\\"score\\\": 3}\\n```"+`"}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `[DONE]`)
	s, res, _, err := askAPI(t, m{
		"provider": "openai", "model": "model-b", "report": "report.md", "accept": []m{{"extract": m{"text": m{"to": "out.md"}}}},
		"answer": m{"schema": m{"type": "object", "properties": m{"score": m{"type": "number"}}, "required": []string{"score"}}},
	}, answer)
	if err != nil || strings.Contains(fmt.Sprint(res.Warnings), "did not write") || fmt.Sprint(res.Values["score"]) != "3" || res.Writes["out.md"] == "" {
		t.Errorf("%v %+v", err, res)
	}
	if body := string(s.Requests()[0].Body); !strings.Contains(body, "json") || strings.Contains(body, "response_format") {
		t.Errorf("the block was not asked for: %s", body)
	}
}

// answer.block asks a provider for a block that could hold the model to the schema.
func TestBlockOfService(t *testing.T) {
	for _, block := range []bool{false, true} {
		s, res, _, err := askAPI(t, m{
			"provider": "openai", "model": "model-b",
			"answer": m{"block": block, "schema": m{"type": "object", "properties": m{"n": m{"type": "integer"}}, "required": []string{"n"}}},
		}, sse(`{"choices":[{"index":0,"delta":{"content":"{\"n\": 3}"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `[DONE]`))
		if err != nil || fmt.Sprint(res.Values["n"]) != "3" {
			t.Errorf("block %v: %v %+v", block, err, res)
		}
		if body := string(s.Requests()[0].Body); strings.Contains(body, "response_format") == block {
			t.Errorf("block %v: %s", block, body)
		}
	}
}

// what a plan knows of the blocks that are to be kept: beginnings are equal where everything up to there is.
func TestSharedBlocks(t *testing.T) {
	files := func(name string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("content of " + name)), nil
	}
	prompt := func(own string) m {
		return m{"text": "{HEAD}\n{BORDER}\n{PAGE}\n{BORDER}\n" + own, "vars": m{"HEAD": m{"file": "head.md"}, "PAGE": m{"artifact": "page.html"}}}
	}
	shared := func(with m) []nodes.PromptBlock {
		raw, _ := json.Marshal(with)
		sharer, _ := nodes.Able[nodes.Sharer](Kind, raw)
		return sharer.Shared(files)
	}
	api := shared(m{"provider": "anthropic", "model": "a", "system": m{"text": "be"}, "prompt": prompt("one")})
	if len(api) != 2 || api[0].Chars != 21 || len(api[0].Reads) > 0 || fmt.Sprint(api[1].Reads) != "[page.html]" {
		t.Fatalf("%+v", api)
	}
	for _, tt := range []struct {
		name   string
		with   m
		blocks int
		equal  int // how many of them are those of the API
	}{
		{"another end", m{"provider": "anthropic", "model": "a", "system": m{"text": "be"}, "prompt": prompt("two")}, 2, 2},
		{"another model", m{"provider": "anthropic", "model": "b", "system": m{"text": "be"}, "prompt": prompt("one")}, 2, 0},
		{"another system text", m{"provider": "anthropic", "model": "a", "system": m{"text": "by"}, "prompt": prompt("one")}, 2, 0},
		{"off", m{"provider": "anthropic", "model": "a", "cache": "off", "prompt": prompt("one")}, 0, 0},
		{"system text of claude", m{"provider": "claude", "system": m{"text": "be"}, "prompt": prompt("one")}, 1, 0},
		{"no border", m{"provider": "anthropic", "model": "a", "prompt": m{"text": "one"}}, 0, 0},
		{"who says nothing of a cache", m{"provider": "codex", "prompt": prompt("one")}, 0, 0},
	} {
		got := shared(tt.with)
		equal := 0
		for equal < min(len(got), len(api)) && got[equal].Digest == api[equal].Digest {
			equal++
		}
		if len(got) != tt.blocks || equal != tt.equal {
			t.Errorf("%s: %d blocks, %d of them equal: %+v", tt.name, len(got), equal, got)
		}
	}
}

// Q1, Q2: the claude agent gets the fixed blocks as system text, behind the node's own; what a run wrote does not
// speak there.
func TestSystemTextOfClaude(t *testing.T) {
	for _, tt := range []struct {
		name, text, system, prompt string
	}{
		{"no border", "own", "be", "own"},
		{"fixed blocks", "one\n{BORDER}\ntwo\n{BORDER}\n{PAGE}\n{BORDER}\nown", "be\n\none\ntwo\n", "<p>\nown"},
		{"never the last one", "one\n{BORDER}\nown", "be\n\none\n", "own"},
		{"a page first", "{PAGE}\n{BORDER}\nown", "be", "<p>\nown"},
		{"too long for an argument", strings.Repeat("x", mostArgument) + "\n{BORDER}\nown", "be", strings.Repeat("x", mostArgument) + "\nown"},
	} {
		task, host := nodetest.New(t, "agent", m{"provider": "claude", "system": m{"text": "be"},
			"prompt": m{"text": tt.text, "vars": m{"PAGE": m{"artifact": "page.html"}}}})
		host.Artifacts = map[string]string{"page.html": "<p>"}
		s, err := read(task.With)
		if err != nil {
			t.Fatal(err)
		}
		q, err := s.prepare(task)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.assemble(); err != nil {
			t.Fatal(err)
		}
		if system, prompt := q.headed(); system != tt.system || prompt != tt.prompt {
			t.Errorf("%s: %.60q and %.60q", tt.name, system, prompt)
		}
	}
}
