package specs_test

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

// marked is a host in which everything that a node may read holds its own name, in «».
func marked(t *testing.T, id string) *nodetest.Host {
	t.Helper()
	host, n := newHost(), node(t, basePlan(t).Plan, id)
	for _, name := range n.Files {
		if !strings.HasPrefix(name, "templates/") {
			host.Files[name] = "«" + name + "»"
		}
	}
	for _, name := range n.Reads {
		if !strings.HasSuffix(name, ".zip") {
			host.Artifacts[name] = "«" + name + "»"
		}
	}
	for _, a := range basePlan(t).Plan.Accumulators {
		delete(host.Artifacts, a.Name)
		for _, which := range []string{"first", "last"} {
			host.Accumulators[a.Name] = append(host.Accumulators[a.Name], nodes.Entry{Accumulator: a.Name, Text: "«" + a.Name + ", " + which + "»"})
		}
	}
	return host
}

// outline lists headings and marks of a prompt in their order.
func outline(prompt string) string {
	return strings.Join(regexp.MustCompile(`(?m)^#+ .*$|«[^»]*»`).FindAllString(prompt, -1), "\n")
}

// shared is what all prompts of one kind begin with, so that a service reads it once.
const shared = `## The world
«context/world-description.md»
«context/conviction-brief.md»
## What the page has to carry
«context/content.md»
## A chapter that works
«context/case-study.md»
«context/mechanism-catalog.md»
## Tokens
«context/tokens.css»
## Components
«context/components.css»
## Seven lenses
«context/seven-lenses.md»
## Sources
## [1/5] artifacts-by-content (PRIMACY POSITION)
«corpus/durability/artifacts-by-content.md»
## [2/5] full-disks-and-locks
«corpus/durability/full-disks-and-locks.md»
## [3/5] checkpoints-and-revert
«corpus/durability/checkpoints-and-revert.md»
## [4/5] what-a-crash-costs
«corpus/durability/what-a-crash-costs.md»
## [5/5] written-then-synced
«corpus/durability/written-then-synced.md»
## The page
«artifact.html»
`

const remembered = `## What earlier subsets established
«subset-summaries, first»
«subset-summaries, last»
## What earlier passes believed
«conviction-layer, first»
«conviction-layer, last»
## What earlier passes found
«discovery-log, first»
«discovery-log, last»`

const mended = `«context/conviction-brief.md»
«context/mechanism-catalog.md»
## Tokens
«context/tokens.css»
## Components
«context/components.css»
## What the reader wrote
### What would help most
### The one change that would raise it most
## The page
«artifact.html»
`

const looked = `## Pictures
«hardening/cycle-2/pictures.json»
## Source of the page
«hardening/cycle-2/source.html»
## How to look
«context/guardrails.md»
`

func judged(cycle int, before string) string {
	return strings.ReplaceAll(`# Weaver, cycle N
## Protocol
## Pictures
«hardening/cycle-N/pictures.json»
## Gates
«hardening/cycle-N/gates.json»
## Reports
«reports-N, first»
«reports-N, last»
## Questions of the fifth tier
«context/tier5.md»
## Your previous report
`, "N", fmt.Sprint(cycle)) + before + `## The page
«artifact.html»
## Your report
## Anchor
## Scores
## Top-5 fixes
## Decision
## Improvement vector
## Your answer`
}

// C-4, C-5, C-6, C-13, P-7, P-8, P-11, P-12, P-14, P-15, K-3, K-5: what stands in each prompt of the shipped specification, under which
// heading and in which order, and what is said where there is nothing yet.
func TestWhatPromptsHold(t *testing.T) {
	heard := past{}.ended(h(2, "route"), "decision", `"refine"`).ended(h(2, "weaver"), "anchor", `"Calm."`, "vector", `"Less."`, "changes", `[{"class":"STRUCTURAL","text":"Shorter."}]`)
	polish := past{}.ended(h(2, "route"), "decision", `"polish"`)
	readers := past{}
	for _, name := range strings.Split("ABCDEFGHI", "") {
		readers.ended(h(2, "auditor-"+name))
	}
	readers.ended(h(2, "gates"), "failures", `["GR-23"]`)[h(2, "auditor-C")] = dag.View{Status: "failed"}
	for _, tt := range []struct {
		id      string
		sc      past
		outline string
		says    []string // in words
		empty   []string // where nothing has been written yet
	}{
		{"S3/p4", nil, shared + "# Builder\n## Your task\n## Where you are\n" + remembered,
			[]string{"Subset S3: Durability. Pass 4 of 8, rotation B. New rotation", "artifacts-by-content → full-disks-and-locks → checkpoints-and-revert → what-a-crash-costs → written-then-synced (rotation B, middle files first)"},
			[]string{"## The page\n\nThere is no page yet. Begin it.", "established\n\nNothing yet: this is the first subset.", "believed\n\nNothing yet.", "found\n\nNothing yet."}},
		{"S3/p6", nil, shared + "# Builder\n## Your task\n## Where you are\n## What the verifier observed\n«observations-S3, last»\n" + remembered,
			[]string{"Subset S3: Durability. Pass 6 of 8, rotation B. A verifier has read the page", "The last look at the page was pass 21. Notes under another"}, nil},
		{"S3/p5", nil, shared + "# Verifier\n## Your task\n## Deeply integrated\n## Surface level\n## Absent\n## Where you are",
			[]string{"Subset S3: Durability. Pass 5 of 8, rotation B. You observe and change nothing.", "artifacts-by-content → full-disks-and-locks → checkpoints-and-revert → what-a-crash-costs → written-then-synced (rotation B, middle files first)"},
			[]string{"There is no page yet."}},
		{"S3/retrospective", nil, "## The page\n«artifact.html»\n# Retrospective of subset S3, Durability\n## Observations\n«observations-S3, first»\n«observations-S3, last»\n## Your task\n## Summary",
			nil, []string{"The verifiers of this subset left nothing.", "There is no page yet."}},
		{"S4/cross-check", nil, "## The page\n«artifact.html»\n# Cross-check after subset S4, Breakers\n## What each subset established\n«subset-summaries, first»\n«subset-summaries, last»\n## Your task\n## Still visible\n## Faded",
			nil, []string{"No summaries were made.", "There is no page yet."}},
		{h(2, "auditor-B"), nil, looked + "# Auditor B\n## Your questions\n## Cross-validation\n## Your report\n## Completion\n## Your answer",
			[]string{"Your focus: reading", "Score it as PA-05: X.X/4.", "Write it to `report.md`", "give the score too"}, []string{"There are no pictures this time. Judge from the source below"}},
		{h(2, "auditor-D"), nil, looked + "# Auditor D\n## Your questions\n## Your report\n## Completion\n## Your answer",
			[]string{"Your focus: order", "`viewport-`", "`full-`", "`scroll-`"}, nil},
		{h(2, "auditor-I"), nil, looked + "# Integrative auditor I\n## Your questions\n## Your report\n## Gestalt\n## Completion\n## Your answer",
			[]string{"Your focus: the whole", "Write it to `report.md`", "`viewport-`", "`full-`", "`scroll-`"}, []string{"There are no pictures this time. Judge from the source below"}},
		{h(1, "weaver"), nil, judged(1, ""), []string{"0 of 9 auditors", "This is the first cycle.", "Mode of the page: COMPOSED"}, []string{"There are no pictures this time.", "```json\n{}\n```"}},
		{h(2, "weaver"), readers, judged(2, "«hardening/cycle-1/weaver-synthesis.md»\n"), []string{"8 of 9 auditors", "Mode of the page: APPLIED"}, []string{"report\n\nIt was lost."}},
		{h(2, "refine-1"), heard, mended + "# Refinement\n## Your task\n## Remaining improvements",
			[]string{"wrote\n\nCalm.", "most\n\n- [STRUCTURAL] Shorter.", "raise it most\n\nLess.", "Improve what would help a reader most.", "[HIGH], [MEDIUM] or [LOW]", "<!-- IMPROVEMENTS: "},
			[]string{"There is no page yet."}},
		{h(2, "refine-1"), polish, mended + "# Refinement\n## Your task\n## Remaining improvements", []string{"Polish: change details only.", "wrote\n\n(nothing)", "most\n\n(nothing)"}, nil},
		{h(2, "rebuild"), heard, mended + "# Rebuild\n## The world\n«context/world-description.md»\n## What the page has to carry\n«context/content.md»\n## Your task",
			[]string{"wrote\n\nCalm.", "most\n\n- [STRUCTURAL] Shorter.", "raise it most\n\nLess."}, []string{"There is no page yet."}},
	} {
		prompt := ask(t, tt.id, tt.sc, marked(t, tt.id), "x").prompt
		if got := outline(prompt); got != tt.outline {
			t.Errorf("%s is asked\n%s\nwant\n%s", tt.id, got, tt.outline)
		}
		if left := regexp.MustCompile(`\{[A-Z][A-Z0-9_]+\}`).FindString(prompt); left != "" {
			t.Errorf("%s: %s is not filled in", tt.id, left)
		}
		for _, want := range tt.says {
			if !strings.Contains(prompt, want) {
				t.Errorf("%s is not told %q:\n%s", tt.id, want, tail(prompt))
			}
		}
		nothing := newHost()
		delete(nothing.Artifacts, "artifact.html")
		if strings.Contains(tt.id, "auditor") || strings.Contains(tt.id, "weaver") { // they are handed the page as a file
			nothing = newHost()
		}
		prompt = ask(t, tt.id, tt.sc, nothing, "x").prompt
		for _, want := range tt.empty {
			if !strings.Contains(prompt, want) {
				t.Errorf("%s, where nothing is written yet, is not told %q:\n%s", tt.id, want, tail(prompt))
			}
		}
	}
}

// C-6, K-5: the blocks in which prompts are sent, by what each begins with: first what many of them have in common, which a
// service reads once, and last what a prompt has for itself.
func TestWhatPromptsShare(t *testing.T) {
	for id, want := range map[string]string{
		"S3/p4":            "## The world, ## Sources, ## The page, # Builder",
		"S3/p5":            "## The world, ## Sources, ## The page, # Verifier",
		"S3/retrospective": "## The page, # Retrospective of subset S3, Durability",
		"S4/cross-check":   "## The page, # Cross-check after subset S4, Breakers",
		h(2, "auditor-B"):  "## Pictures, <file name=\"page.html\">, # Auditor B",
		h(2, "auditor-I"):  "## Pictures, <file name=\"page.html\">, # Integrative auditor I",
		h(2, "weaver"):     "<file name=\"page.html\">, # Weaver, cycle 2",
		h(2, "refine-1"):   "«context/conviction-brief.md», ## What the reader wrote, ## The page, # Refinement",
		h(2, "rebuild"):    "«context/conviction-brief.md», ## What the reader wrote, ## The page, # Rebuild",
	} {
		var begin []string
		for _, block := range ask(t, id, past{}, marked(t, id), "x").blocks {
			line, _, _ := strings.Cut(strings.TrimSpace(block), "\n")
			begin = append(begin, line)
		}
		if got := strings.Join(begin, ", "); got != want {
			t.Errorf("%s is sent as %s, want %s", id, got, want)
		}
	}
}

// C-8, C-10, C-13, P-9, P-11, K-5: what prompts ask for is what is accepted: sections, marks, widths, scales and classes stand in
// the text as they do in the settings.
func TestWhatIsAskedForIsAccepted(t *testing.T) {
	for id, want := range map[string][]string{
		"S3/p4":            {"`.page`, between 940 and 960 pixels", "`<!-- INTENT: ... -->`", "`<!-- IMPROVEMENTS: ... -->`", "<!-- CONVICTION_ADDITION_START -->\n...\n<!-- CONVICTION_ADDITION_END -->\n<!-- DISCOVERY_LOG_START -->\n...\n<!-- DISCOVERY_LOG_END -->"},
		h(2, "rebuild"):    {"`.page`, between 940 and 960 pixels", "INTENT and IMPROVEMENTS"},
		h(2, "refine-1"):   {"## Remaining improvements", "[HIGH]", "- [LOW] ..."},
		h(2, "weaver"):     {"PA-05: X.X/4\nTier 5: N/9\nSurprise: N/10\nDelight: N/10\nAuthority: N/10\nEarned closure: N/10\n", "**Tier 5.** How many of the nine", "earned closure, each from 1 to 10", "RELEASE, POLISH, IMPROVE or RETHINK", "MECHANICAL, STRUCTURAL or COMPOSITIONAL", "1. [MECHANICAL] ..."},
		h(2, "auditor-A"):  {"- PA-05: As a designed whole", "Score it as PA-05: X.X/4."},
		"S3/p5":            {"## Deeply integrated\n", "## Surface level\n", "## Absent\n"},
		"S4/cross-check":   {"## Still visible\n", "## Faded\n"},
		"S3/retrospective": {"## Summary\n"},
		h(2, "auditor-I"):  {"## Completion\n"},
	} {
		prompt := ask(t, id, past{}, marked(t, id), "x").prompt
		for _, text := range want {
			if !strings.Contains(prompt, text) {
				t.Errorf("%s is not asked for %q", id, text)
			}
		}
	}
}

// P-7, P-8, P-9, K-5: each question of the document is asked, of one reader; those that B, C, F and G share with A stand in both.
func TestEveryQuestionIsAsked(t *testing.T) {
	asked, line := map[string]string{}, regexp.MustCompile(`(?m)^- (PA-\d\d): (\S.{15,}[?.])$`)
	for _, name := range strings.Split("ABCDEFGHI", "") {
		prompt := ask(t, h(2, "auditor-"+name), past{}, marked(t, h(2, "auditor-"+name)), "x").prompt
		_, own, _ := strings.Cut(prompt, "## Your questions\n")
		own, _, _ = strings.Cut(own, "\n## ")
		for _, q := range line.FindAllStringSubmatch(own, -1) {
			asked[q[1]] += name
		}
	}
	want := map[string]string{"PA-48": "I"}
	for name, bounds := range map[string][2]int{"A": {1, 5}, "B": {6, 9}, "C": {10, 13}, "D": {14, 17}, "E": {18, 20}, "F": {21, 23}, "I": {24, 28}, "G": {30, 33}, "H": {34, 37}} {
		for q := bounds[0]; q <= bounds[1]; q++ {
			want[fmt.Sprintf("PA-%02d", q)] = name
		}
	}
	want["PA-29"] = "F"
	if !maps.Equal(asked, want) {
		t.Errorf("asked %v\nwant  %v", asked, want)
	}
}

// C-7, K-5: a prompt of a hundred thousand tokens is sent as it is; of a longer one the oldest beliefs go first, then the middle
// of the sources, then what was found, and no more than must.
func TestWhatIsLeftOut(t *testing.T) {
	sized := func(id string, found int, beliefs bool) string {
		host := marked(t, id)
		for name := range host.Files {
			if strings.HasPrefix(name, "corpus/") {
				host.Files[name] += strings.Repeat(" source", 300) + " ¶"
			}
		}
		host.Accumulators["discovery-log"] = []nodes.Entry{{Accumulator: "discovery-log", Text: "«found»" + strings.Repeat("x", found)}}
		if !beliefs {
			host.Artifacts["artifact.html"] += strings.Repeat("x", found)
		}
		prompt, _, _ := strings.Cut(ask(t, id, past{}, host, "x").prompt, block)
		return prompt
	}
	const most = 400000
	room := most - len([]rune(sized("S3/p4", 0, true)))
	for _, tt := range []struct {
		name  string
		over  int
		gone  []string
		still []string
	}{
		{"as it is", 0, nil, []string{"conviction-layer, first", "conviction-layer, last", "«found»", "source ¶"}},
		{"the oldest belief", 1, []string{"conviction-layer, first"}, []string{"conviction-layer, last", "«found»"}},
		{"the middle of the sources", 1500, []string{"conviction-layer, first"}, []string{"«found»", "artifacts-by-content.md»", "written-then-synced.md»"}},
		{"what was found", 20000, []string{"conviction-layer, first", "«found»"}, []string{"artifacts-by-content.md»", "written-then-synced.md»"}},
	} {
		prompt := sized("S3/p4", room+tt.over, true)
		for _, text := range tt.gone {
			if strings.Contains(prompt, text) {
				t.Errorf("%s: it still holds %q", tt.name, text)
			}
		}
		for _, text := range tt.still {
			if !strings.Contains(prompt, text) {
				t.Errorf("%s: it does not hold %q any more", tt.name, text)
			}
		}
		if whole := strings.Count(prompt, "source ¶"); (whole == 5) != (tt.over < 1500) || whole < 3 {
			t.Errorf("%s: %d of 5 sources are whole", tt.name, whole)
		}
	}
	room = most - len([]rune(sized("S3/p5", 0, false)))
	for over, whole := range map[int]int{0: 5, 1: 4} {
		if got := strings.Count(sized("S3/p5", room+over, false), "source ¶"); got != whole {
			t.Errorf("a verifier whose prompt is %d over the limit is given %d whole sources, want %d", over, got, whole)
		}
	}
}
