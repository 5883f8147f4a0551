package extract

import (
	"strings"
	"testing"

	"dagrun.dev/nodes/internal/accept"
)

// BenchmarkAnswers reads answers of 1 MB: an honest one, and hostile ones, which must not cost more than a few times as
// much for each byte, nor more for each byte of a longer answer.
func BenchmarkAnswers(b *testing.B) {
	const size = 1 << 20
	step := newStep(b, `{"html":{"to":"p"},"json":{"to":"j"},"markers":{"n":{"start":"<!-- S -->","end":"<!-- E -->"}},"sections":{"h":{"heading":"H"}}}`)
	honest := strings.Repeat("<p class=\"a\">Lorem ipsum dolor sit amet, <b>consectetur</b>.</p>\n<!-- INTENT: rest here -->\n<script>let a = 1; // note\n</script>\n", size/128)
	for name, src := range map[string]string{
		"honest":            "```html\n<!DOCTYPE html>\n<html><body>\n" + honest + "</body></html>\n```\n",
		"blocks with pages": strings.Repeat("```\n<!-- S -->\n<html><body></html>\n", size/36),
		"documents":         strings.Repeat("<!DOCTYPE html>\n<html><body>\n", size/30),
		"notes":             strings.Repeat("<!-- S -->a<!-- E -->\n", size/22),
		"fences":            strings.Repeat("```\n", size/4),
		"ends of thinking":  strings.Repeat("</think>\n", size/9),
		"headings":          strings.Repeat("# H\n", size/4),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				_ = step.Apply(accept.NewState(nil, src))
			}
		})
	}
}
