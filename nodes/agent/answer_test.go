package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

const fence = "```"

// where the object stands in an answer that ends with a block.
func TestLastBlock(t *testing.T) {
	for _, tt := range []struct{ text, block, rest, want string }{
		{"said\n\n" + fence + "json\n{\"a\": 1}\n" + fence + "\n", `{"a": 1}`, "said", ""},
		{"  " + fence + "JSON \r\n{\r\n}\r\n" + fence, "{\r\n}\r", "", ""},
		{` {"a": "` + fence + `"} `, `{"a": "` + fence + `"}`, "", ""},
		{fence + "html\n<p>\n" + fence + "\n" + fence + "json\n{}\n" + fence, "{}", fence + "html\n<p>\n" + fence, ""},
		{"nothing", "", "", "does not end with a fenced block"},
		{"", "", "", "does not end with a fenced block"},
		{fence + "json\n{}\n" + fence + "\nor\n" + fence + "json\n{}\n" + fence, "", "", "has 2 fenced blocks"},
		{fence + "json\n{\"a\": ", "", "", "is cut"},
		{fence + "json\n{}\n" + fence + "\nDone.", "", "", "text follows"},
		// X5: what a model thinks is no answer.
		{"<think>\nmaybe\n" + fence + "json\n{}\n" + fence, "", "", "never closed"},
		{"So:\n<think>\n" + fence + "json\n{}\n" + fence, "", "", "never closed"},
		{"<think>\n" + fence + "json\n{}\n" + fence + "\n</think>\nsaid\n" + fence + "json\n{\"a\": 1}\n" + fence, `{"a": 1}`, "said", ""},
		{"So:\n<think>\n" + fence + "json\n{}\n" + fence + "\n</think>\n" + fence + "json\n[1]\n" + fence, "[1]", "So:", ""},
		{fence + "json\n{}\n" + fence + "\n</think>\nsaid\n" + fence + "json\n[1]\n" + fence, "[1]", "said", ""},
		{"<think>{}</think>\n{\"a\": 1}", `{"a": 1}`, "", ""},
		// The dress of a block does not matter: a byte order mark, a blank, another fence.
		{"\ufeff{}", "{}", "", ""},
		{"\ufeff" + fence + "json\n{}\n" + fence, "{}", "", ""},
		{"a\n" + fence + " json\n{}\n" + fence, "{}", "a", ""},
		{"a\n~~~~json\n{}\n~~~~\n", "{}", "a", ""},
		{"a\n" + fence + "`json\n{}\n" + fence, "", "", "is cut"},
	} {
		block, rest, err := lastBlock(tt.text)
		if block != tt.block || rest != tt.rest || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %q, %q, %v", tt.text, block, rest, err)
		}
	}
}

var reviewShape = m{"schema": m{"type": "object", "required": []string{"decision"}, "properties": m{
	"decision": m{"enum": []string{"RELEASE", "POLISH"}}, "score": m{"type": "number"}, "id": m{"type": "integer"},
}}}

const reviewed = `{"decision": "POLISH", "score": null, "id": 9007199254740993}`

func shapedWith(more m) func(m, *nodes.Task, *nodetest.Host) {
	return func(with m, _ *nodes.Task, _ *nodetest.Host) {
		delete(with, "accept")
		with["answer"] = reviewShape
		for k, v := range more {
			with[k] = v
		}
	}
}

func simAnswer(text string, more string) string {
	return "- answer: |\n    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n  costUSD: 0.25\n" + more
}

// the ways in which object, text and report go together, with an agent that is not constrained.
func TestShapedAnswer(t *testing.T) {
	block := "\n\n" + fence + "json\n" + reviewed + "\n" + fence
	tests := []struct {
		name, answers, faults string
		with                  m
		category, says        string
		artifact              string // a.txt
	}{
		{"object", simAnswer("Thought."+block, ""), "", m{"to": "a.txt"}, "", "", `{"decision":"POLISH","id":9007199254740993}`},
		{"object and page", simAnswer(fence+"html\n"+page+"\n"+fence+block, ""), "", m{"to": "a.txt", "accept": acceptPage}, "", "", fence + "html\n" + page + "\n" + fence},
		{"object beside a report", simAnswer("Done."+block, "  write: {report.md: \"# Report\"}\n"), "", m{"to": "a.txt", "report": "report.md"}, "", "", "# Report"},
		{"no report", simAnswer("Done."+block, ""), "", m{"report": "report.md"}, "no_artifact", "did not write the file report.md", ""},
		{"no page", simAnswer("No page."+block, ""), "", m{"accept": acceptPage}, "no_artifact", "", ""},
		{"unfit", simAnswer("Done."+block, ""), "*:bad_answer", m{}, "bad_answer", "answer: missing decision; answer: no field is named not_asked_for", ""},
		{"no object", simAnswer("POLISH, I would say.", ""), "", m{}, "bad_answer", "does not end with a fenced block", ""},
		{"cut at a limit", simAnswer("Done."+block, ""), "*:max_tokens", m{}, "truncated", "max_tokens", ""},
		{"cut without a sign", simAnswer("Done."+block, ""), "*:truncated", m{}, "bad_answer", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			task, host, res, err := sim(t, tt.answers, tt.faults, shapedWith(tt.with))
			if nodetest.Category(err) != tt.category || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("%v, want %s: %s", err, tt.category, tt.says)
			}
			if res.CostUSD == nil || *res.CostUSD != 0.25 || !strings.Contains(host.Kept["prompt.md"], `"RELEASE"`) || host.Kept["raw-output.txt"] == "" {
				t.Errorf("cost %v, kept %v", res.CostUSD, host.Kept)
			}
			if tt.artifact != "" {
				if got := nodetest.Stage(t, task, res, "a.txt"); got != tt.artifact {
					t.Errorf("a.txt is %q, want %q", got, tt.artifact)
				}
			}
			if err == nil && (res.Values["decision"] != "POLISH" || res.Values["id"] != int64(9007199254740993) || res.Values["score"] != nil) {
				t.Errorf("values %v", res.Values)
			}
			if err == nil && !strings.Contains(host.Kept[nodes.SavedName], `"id":9007199254740993`) {
				t.Errorf("saved %s", host.Kept[nodes.SavedName])
			}
			if err != nil && res.Values["decision"] != nil && tt.category == "bad_answer" {
				t.Errorf("values of a bad answer: %v", res.Values)
			}
		})
	}
}

// else holds when nobody asks again, with a warning and a note, and the call is booked.
func TestAnswerElse(t *testing.T) {
	answer := m{"schema": reviewShape["schema"], "else": m{"decision": "POLISH"}}
	for _, again := range []bool{true, false} {
		_, host, res, err := sim(t, simAnswer("POLISH.", ""), "", shapedWith(m{"answer": answer}), func(_ m, task *nodes.Task, _ *nodetest.Host) {
			task.Again = func(category string) bool { return again && category == "bad_answer" }
		})
		if *res.CostUSD != 0.25 || host.Types() != "LLM_CALL_STARTED LLM_CALL_FINISHED" {
			t.Errorf("cost %v, facts %s", *res.CostUSD, host.Types())
		}
		if again {
			if nodetest.Category(err) != "bad_answer" || len(res.Notes) > 0 {
				t.Errorf("asked again: %v %+v", err, res)
			}
			continue
		}
		if err != nil || res.Values["decision"] != "POLISH" || len(res.Warnings) != 1 || len(res.Notes) != 1 || res.Notes[0].Type != "answer-else" {
			t.Errorf("%v %+v", err, res)
		}
	}
}

// X3: what a program prints as text is its answer, whatever it says, unless a contract tells them apart.
func TestAnyTextIsWarnedOf(t *testing.T) {
	for _, tt := range []struct {
		with m
		warn bool
	}{
		{m{"provider": "command"}, true},
		{m{"provider": "command", "to": "a.txt"}, true},
		{m{"provider": "command", "answer": reviewShape}, false},
		{m{"provider": "command", "accept": acceptPage}, false},
		{m{"provider": "command", "report": "r.md"}, false},
		{m{"provider": "command", "command": m{"parse": "json", "field": "text"}}, false},
		{m{"provider": "claude"}, false},
	} {
		tt.with["argv"], tt.with["prompt"] = []string{"x"}, m{"text": "go"}
		raw, _ := json.Marshal(tt.with)
		checker, _ := nodes.Able[nodes.FileChecker](Kind, raw)
		_, warnings := checker.CheckFiles(nil)
		if (len(warnings) == 1 && strings.HasPrefix(warnings[0], "any text is accepted")) != tt.warn {
			t.Errorf("%s: %v", raw, warnings)
		}
	}
}
