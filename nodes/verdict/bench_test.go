package verdict

import (
	"strings"
	"testing"

	"dagrun.dev/nodes/internal/accept"
)

// BenchmarkReviews reads reviews of 1 MB: an honest one, and hostile ones.
func BenchmarkReviews(b *testing.B) {
	const size = 1 << 20
	step, err := Kind.Step([]byte(`{"decision":{"label":"Ship Decision","values":["RELEASE","POLISH","RETHINK"],"else":"POLISH"},
		"scores":{"PA-05":4,"PA-06":4},"tiers":{"Tier 5":9},"fixes":{"heading":"Fixes","classes":["A"]}}`))
	if err != nil {
		b.Fatal(err)
	}
	for name, unit := range map[string]string{
		"honest":      "The header is calm, and the grid holds at 1440 px; cards 3 of 4 align.\n\n- **Rhythm**: the `gap` is 24px\n\n",
		"scores":      "PA-05: 3/4\n",
		"one line":    "PA-05: 3/4, ",
		"tables":      "| a | b |\n|---|---|\n",
		"decisions":   "Ship Decision: RELEASE\n",
		"labels":      "Ship Decision\n",
		"verdicts":    "Verdict\n",
		"comments":    "<!-- --> ",
		"empty lines": "\n",
	} {
		src := strings.Repeat(unit, size/len(unit))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				_ = step.Apply(accept.NewState(nil, src))
			}
		})
	}
}
