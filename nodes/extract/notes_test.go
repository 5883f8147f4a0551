package extract

import (
	"testing"

	"dagrun.dev/nodes/internal/accept"
)

// C-8, C-9: markers count as whole lines; with anything but pairs nothing is taken. notes "-": none.
func TestNotesNeighbours(t *testing.T) {
	tests := []struct{ answer, outcome, notes string }{
		{"a\n<<<NOTES\nx\nNOTES>>>\n<<<NOTES\ny\n", "fail", "-"},
		{"<<<NOTES\nx\nNOTES>>>\nNOTES>>>\n", "fail", "-"},
		{"<<<NOTES\nx\nNOTES>>>\n<<<NOTES\nx\nNOTES>>>\n", "ok_warn", "x"},
		{"**<<<NOTES**\nx\n**NOTES>>>**", "none", "-"},
		{"`<<<NOTES`\nx\n`NOTES>>>`", "none", "-"},
		{"> <<<NOTES\n> x\n> NOTES>>>", "none", "-"},
		{"- <<<NOTES\nx\n- NOTES>>>", "none", "-"},
		{"<<<notes\nx\nnotes>>>", "none", "-"},
		{"<<<NOTES:\nx\nNOTES>>>", "fail", "-"},
		{"<<<NOTES x\nNOTES>>>", "fail", "-"},
		{"<<<NOTES\nx NOTES>>>", "fail", "-"},
		{"<<<NOTES\n```js\nx\n```\nNOTES>>>", "ok", "```js\nx\n```"},
		{"<<<NOTES\n```js\nx\nNOTES>>>\nafter", "ok", "```js\nx"},
		{"<<<NOTES\n~~~~md\nNOTES>>>\n~~~\nNOTES>>>\n~~~~\na\nNOTES>>>\nend", "fail", "-"},
		{"<<<NOTES\n```\n<<<NOTES\nx\nNOTES>>>\n```\na\nNOTES>>>", "ok_warn", "```\n<<<NOTES\nx\nNOTES>>>\n```\na"},
		{"<<<NOTES\n```\nNOTES>>>\n```html\n<!DOCTYPE html>\n<html><body>x</body></html>\n```\nNOTES>>>", "fail", "-"},
		{"<<<NOTES\n```\nx\nNOTES>>>\n```html\n<!DOCTYPE html>\n<html><body>x</body></html>\n```\n<<<NOTES\ny\nNOTES>>>", "ok_warn", "```\nx\ny"},
		{"<<<NOTES\n```\na\nNOTES>>>\nNOTES>>>", "fail", "-"},
		{"<<<NOTES\n```\na\nNOTES>>>\n```\nb\n```\n", "ok", "```\na"},
		{"```\nx\n\n<<<NOTES\na\nNOTES>>>", "ok_warn", "a"},
		{"<<<NOTES\n\n\na\n\nb\n\n\nNOTES>>>", "ok", "a\n\nb"},
		{"\ufeff<<<NOTES\na\nNOTES>>>", "ok", "a"},
		{"\u200b<<<NOTES\u00a0\na\n\u200fNOTES>>>", "ok", "a"},
		{"<<<NOTES\ra\rNOTES>>>\r", "ok", "a"},
		{"<think>\n<<<NOTES\nx\nNOTES>>>\n</think>\n<<<NOTES\na\nNOTES>>>", "ok", "a"},
		{"<think>\n<<<NOTES\nx\nNOTES>>>\n</think>\n", "none", "-"},
		{"<<<NOTES\nx\nNOTES>>>\n</think>\n<<<NOTES\na\nNOTES>>>", "ok", "a"},
		{"<<<NOTES\n<think>x</think>\na\nNOTES>>>", "ok", "<think>x</think>\na"},
		{"~~~\n<<<NOTES\ns\nNOTES>>>\n~~~\n<<<NOTES\na\nNOTES>>>", "ok_warn", "a"},
		{"```\n<<<NOTES\n```\n<<<NOTES\na\nNOTES>>>", "ok_warn", "a"},
		{"```\n<<<NOTES\na\nNOTES>>>\n```\nand\n```\n<<<NOTES\nb\nNOTES>>>\n```", "ok_warn", "a\nb"},
		{"<<<NOTES\nNOTES>>> <<<NOTES\nb\nNOTES>>>", "ok", "NOTES>>> <<<NOTES\nb"},
		{"<<<NOTES NOTES>>>", "none", "-"},
		{"<<<NOTESNOTES>>>", "none", "-"},
		{"<!-- <<<NOTES -->\nx\n<!-- NOTES>>> -->", "none", "-"},
		{"&lt;&lt;&lt;NOTES\nx\nNOTES&gt;&gt;&gt;", "none", "-"},
		{"<<<NOTES\n  indented\n\ttab\nNOTES>>>", "ok", "  indented\n\ttab"},
		{"<<<NOTES\na\x00b\nNOTES>>>", "ok", "a\x00b"},
		{"<<<NOTES\n<<<NOTES2\nNOTES>>>", "ok", "<<<NOTES2"},
		{"<<<NOTES\n\nNOTES>>>\n<<<NOTES\na\nNOTES>>>", "ok_warn", "a"},
		{"NOTES>>>\nx\n<<<NOTES", "fail", "-"},
		{"<<<NOTES\n```\nNOTES>>>\n```\nb\nNOTES>>>", "ok", "```\nNOTES>>>\n```\nb"},
		{"<<<NOTES\n```\nx\n```\nNOTES>>>\n```\nNOTES>>>\n```", "ok_warn", "```\nx\n```"},
		{"<<<NOTES\na\nNOTES>>>\n```\nx\n```\nNOTES>>>", "fail", "-"},
	}
	for _, tt := range tests {
		s := accept.NewState(nil, tt.answer)
		err := newStep(t, `{"markers":{"notes":{"start":"<<<NOTES","end":"NOTES>>>","missing":"ignore","broken":"fail"}}}`).Apply(s)
		outcome, _ := outcomeOf(t, s, err)
		notes, ok := s.Texts["notes"]
		if !ok {
			notes = "-"
		}
		if outcome == "ok" && !ok {
			outcome = "none"
		}
		if outcome != tt.outcome || notes != tt.notes {
			t.Errorf("%q: %s %q, want %s %q; %v %q", tt.answer, outcome, notes, tt.outcome, tt.notes, err, s.Warnings)
		}
	}
}

// C-9: two steps may declare the same markers, and markers of two names may overlap; notes that stand in the document
// are cut out of it once.
func TestSameMarkersTwice(t *testing.T) {
	const markers = `"markers":{"n":{"start":"<!-- S -->","end":"<!-- E -->"}}`
	s := accept.NewState(nil, "<!DOCTYPE html>\n<html><body>x\n<!-- S -->\na\n<!-- E -->\n</body></html>\n")
	for _, with := range []string{`{` + markers + `}`, `{"html":{"to":"p"},` + markers + `}`} {
		if err := newStep(t, with).Apply(s); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(s.Artifacts["p"]); got != "<!DOCTYPE html>\n<html><body>x\n\n</body></html>" || s.Texts["n"] != "a" {
		t.Errorf("page %q, notes %q", got, s.Texts["n"])
	}
	s = accept.NewState(nil, "<!DOCTYPE html>\n<html><body>x\n<!-- S --><!-- T -->a<!-- E -->b<!-- F --></body></html>\n")
	with := `{"html":{"to":"p"},"markers":{"n":{"start":"<!-- S -->","end":"<!-- E -->"},"m":{"start":"<!-- T -->","end":"<!-- F -->"}}}`
	if err := newStep(t, with).Apply(s); err != nil {
		t.Fatal(err)
	}
	if got := string(s.Artifacts["p"]); got != "<!DOCTYPE html>\n<html><body>x\n</body></html>" {
		t.Errorf("page %q", got)
	}
}
