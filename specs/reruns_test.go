package specs_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// finishedRun is a whole run of a pipeline, for tests that go on from copies of it.
func finishedRun(t *testing.T, spec string) *litRun {
	t.Helper()
	r := &litRun{spec: spec, answers: map[string][]string{}}
	r.site = once(t, spec, func(s *site) { (&litRun{site: s, spec: spec, answers: r.answers}).run(0, "--seed", "7") })
	return r
}

// S-6, S-7: edits of the shipped pipelines, and exactly what each runs again in a run that was finished before it. With $
// somebody is paid again. What is left out is kept as it is, or was looked at again and proved to be the same; nodes that
// only decide, declare or save (routes, milestones, checkpoints, ...) cost nothing and are counted.
func TestWhatEditsRunAgain(t *testing.T) {
	t.Parallel()
	corpusPart := corpus + "/spec.yaml"
	runs := map[string]*litRun{
		lit: finishedRun(t, lit), launch: finishedRun(t, launch), corpusPart: {site: corpusRun(t), answers: map[string][]string{}},
	}
	edits := []struct{ spec, name, file, old, new string }{
		{lit, "a comment", "spec.yaml", "pipeline:\n", "# A review.\npipeline:\n"},
		{lit, "titles and labels", "spec.yaml", `title: "Write: ${section.value.title}"`, `title: "Draft: ${section.value.title}"`},
		{lit, "the budget, and the size of a pool", "spec.yaml", "budget: {capUSD: 40}\n  pools: {agents: 5}", "budget: {capUSD: 30}\n  pools: {agents: 2}"},
		{lit, "how long a reviewer may take", "spec.yaml", "timeout: {attempt: 10m, grace: 30s}", "timeout: {attempt: 11m, grace: 30s}"},
		{lit, "what the simulated agent says: the world outside", "sim/answers.yaml", "order recovery by what must", "order a recovery by what must"},
		{lit, "the library", "context/library.md", "# ", "## "},
		{lit, "the brief", "context/brief.md", "Plain sentences", "Simple sentences"},
		{lit, "the prompt of the polish", "templates/polish.md", "# ", "## "},
		{lit, "the prompt of the devil's advocate of a section", "templates/challenge.md", "# ", "## "},
		{lit, "a threshold that decides alike", "spec.yaml", "additions: {type: number, default: 10.0", "additions: {type: number, default: 11.0"},
		{lit, "a threshold that decides otherwise", "spec.yaml", "additions: {type: number, default: 10.0", "additions: {type: number, default: 60.0"},
		{lit, "a least number that is met", "spec.yaml", "converged: {type: int, default: 2", "converged: {type: int, default: 1"},
		{lit, "the last script", "spec.yaml", `echo "## References"`, `echo "## Works"`},
		{launch, "a comment", "spec.cue", "// Most rounds of checking", "// The most rounds of checking"},
		{launch, "an input of the clone that nobody documents", "source/README.md", "\n", "\n\n"},
		{launch, "a function's comment", "source/lib/lock.sh", "#", "# "},
		{launch, "the budget, and who is asked side by side", "spec.cue", "capUSD: 20}\n\tpools: agents: 4", "capUSD: 30}\n\tpools: agents: 3"},
		{launch, "the style of all drafts", "context/style.md", "\n", "\n\n"},
		{launch, "a wish for the outline", "context/brief.md", "without reading its source", "without its source"},
		{launch, "a page more", "context/brief.md", `{"id": "log", "title": "Messages", "covers": ["log"], "see": ["retry"]}`,
			`{"id": "log", "title": "Messages", "covers": ["log"], "see": ["retry"]}, {"id": "words", "title": "Levels", "covers": [], "see": ["log"]}`},
		{launch, "the script that links", "scripts/link.sh", "# The worktree", "# A worktree"},
		{launch, "the script that asks for the pull request", "scripts/pull-request.sh", "#", "# "},
		{launch, "a gate that holds", "spec.cue", `links:     "every link leads`, `links:     "each link leads`},
		{launch, "a round more", "spec.cue", "rounds: 3", "rounds: 4"},
		{launch, "the name of the library", "spec.cue", `default: "keep", doc`, `default: "kept", doc`},
		{corpusPart, "a comment", "spec.yaml", "pipeline:\n", "# A page.\npipeline:\n"},
		{corpusPart, "budget and breaker", "spec.yaml", "failures: 12}", "failures: 13}"},
		{corpusPart, "the prompt of the cross-checks", "templates/cross-check.md", "# ", "## "},
		{corpusPart, "a source of the last subset", "corpus/verification/operating-a-night.md", "\n", "\n\n"},
		{corpusPart, "the last pass of the last subset in another order", "spec.yaml", "gates-and-verdicts, hardening-in-rounds, operating-a-night]", "hardening-in-rounds, gates-and-verdicts, operating-a-night]"},
	}
	rows := make([]string, len(edits))
	t.Run("edits", func(t *testing.T) {
		for i, e := range edits {
			t.Run(fmt.Sprintf("%s: %s", filepath.Dir(e.spec+"/"), e.name), func(t *testing.T) {
				t.Parallel()
				base := runs[e.spec]
				folder, spec := filepath.Split(e.spec)
				if folder == "" {
					folder, spec = e.spec, ""
				}
				file := editIn(t, folder, e.file, replaced(e.old, e.new))
				r := &litRun{site: copied(t, base.site), answers: map[string][]string{}}
				r.spec = filepath.Join(strings.TrimSuffix(file, filepath.FromSlash(e.file)), spec)
				before := len(r.events())
				r.run(0)
				rows[i] = fmt.Sprintf("%s: %s\n    %s\n", filepath.Base(filepath.Clean(folder)), e.name, strings.Join(r.startedSince(before), " "))
			})
		}
	})
	golden(t, "reruns.txt", []byte(strings.Join(rows, "")))
}

// M-2, M-4, S-6: edits of the scheduler of phases and of its library, one after the other, and exactly which phases the
// ticks after each carry out. What says how a phase is done is no reason to do it again; what it is made from is.
func TestWhatEditsOwe(t *testing.T) {
	l := newLibrary(t, map[string]string{"a": "{}", "b": "{}"})
	spec := func(old, new string) func() {
		return func() { rewrite(t, filepath.Join(l.spec, "spec.yaml"), replaced(old, new)) }
	}
	meta := func(old, new string) func() {
		return func() { rewrite(t, l.path("a/.meta/meta.json"), replaced(old, new)) }
	}
	var out strings.Builder
	for _, e := range []struct {
		name string
		do   func()
	}{
		{"nothing yet: two entities", func() {}},
		{"a comment of the specification", spec("pipeline:\n", "# A library.\npipeline:\n")},
		{"a title, the budget, how long a phase may take", spec("budget: {capUSD: 2}", "budget: {capUSD: 3}")},
		{"the prompt of the builder", func() {
			rewrite(t, filepath.Join(l.spec, "templates", "builder.md"), replaced("four hundred words", "three hundred words"))
		}},
		{"how many rounds are archived", spec("archive: 5", "archive: 3")},
		{"a document of a", func() { l.write("a/text.md", "# About a\n\nMore.\n") }},
		{"the same document with the same words", func() { l.write("a/text.md", "# About a\n\nMore.\n") }},
		{"another file of a that is no document", func() { l.write("a/notes.txt", "none\n") }},
		{"a wish in the metadata of a", meta("{", `{"_steer":"Be brief.",`)},
		{"the critic of a is asked for again", meta(`"critic":"fresh"`, `"critic":"pending"`)},
		{"the builder of a is asked for again", meta(`"builder":"fresh"`, `"builder":"pending"`)},
		{"the architect of a is asked for again", meta(`"architect":"fresh"`, `"architect":"stale"`)},
		{"a is turned off, and edited", func() {
			meta("{", `{"_disabled":true,`)()
			l.write("a/text.md", "# About a\n\nStill more.\n")
		}},
		{"a is turned on again", meta(`"_disabled":true`, `"_disabled":false`)},
		{"a document more in a folder of b", func() { l.write("b/more/deep.md", "# Deep\n") }},
		{"a third entity", func() { l.write("c/text.md", "# About c\n"); l.write("c/.meta/meta.json", "{}") }},
		{"which files are documents", spec(`root: "${params.library}"`, "root: \"${params.library}\"\n        content: [\"../**/*.md\", \"../*.txt\"]")},
	} {
		e.do()
		fmt.Fprintf(&out, "%s\n   ", e.name)
		for tick := ""; tick != "idle"; {
			tick = l.tick()
			fmt.Fprintf(&out, " %s;", tick)
		}
		out.WriteString("\n")
	}
	golden(t, "meta-reruns.txt", []byte(out.String()))
}

// startedSince lists the nodes of which an attempt began behind so many events, with $ where a model was asked, and counts
// those that are no work.
func (s *site) startedSince(before int) []string {
	s.t.Helper()
	ran, others, nodes := map[string]string{}, map[string]bool{}, s.document().Nodes
	for _, e := range s.events()[before:] {
		switch id := e.Payload.Node; e.Type {
		case "WORK_ITEM_STARTED":
			if slices.Contains([]string{"exec", "agent", "http", "gates", "screenshot"}, nodes[id].Kind) {
				ran[id] += ""
			} else {
				others[id] = true
			}
		case "LLM_CALL_STARTED":
			ran[id] = "$"
		}
	}
	var out []string
	for id, paid := range ran {
		out = append(out, id+paid)
	}
	if slices.Sort(out); len(others) > 0 {
		out = append(out, fmt.Sprintf("+%d", len(others)))
	}
	if out == nil {
		return []string{"nothing"}
	}
	return out
}
