// Command mutate changes one thing at a time, each number, section, rule and question of the large specification and each
// condition and statement of the state machine, and says which changes no test notices.
//
//	go run ./internal/testing/mutate [-only spec,templates,gates,machine] [-sample N] [-match TEXT] [-for 10m] [-list]
//
// It runs in the root of the project and leaves its files alone: a specification is changed in a copy, Go by -overlay.
// Results are kept in build/mutate: one that was noticed is looked at again when its file or the file of the test that
// noticed it has changed, one that was not when any test has. accepted.txt holds the changes that no test can notice, or
// needs to, each with its reason; one that is noticed or does not exist any more must be taken out.
package main

import (
	"cmp"
	_ "embed"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

//go:embed accepted.txt
var acceptedLines string

func main() {
	only := flag.String("only", "spec,templates,gates,machine", "what is changed")
	sample := flag.Int("sample", 0, "try so many of each part, chosen by -seed; 0: all")
	seed := flag.Uint64("seed", 1, "of the sample")
	match := flag.String("match", "", "try only changes that hold this text")
	limit := flag.Duration("for", 0, "try changes for so long, then say what is known; the next call goes on; 0: without limit")
	list := flag.Bool("list", false, "list the changes and try none")
	flag.Parse()
	survivors, err := run(strings.Split(*only, ","), *match, *sample, *seed, *limit, *list)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if survivors > 0 {
		os.Exit(1)
	}
}

func run(only []string, match string, sample int, seed uint64, limit time.Duration, list bool) (survivors int, err error) {
	accepted, err := parseAccepted(acceptedLines)
	if err != nil {
		return 0, err
	}
	until := time.Now().Add(cmp.Or(limit, 1000*time.Hour))
	results, err := openResults()
	if err != nil {
		return 0, err
	}
	for _, p := range parts() {
		if !slices.Contains(only, p.name) {
			continue
		}
		all, err := p.mutants()
		if err != nil {
			return 0, err
		}
		for name, reason := range accepted {
			if strings.HasPrefix(name, p.folder+"/") && reason != "" && !slices.ContainsFunc(all, func(m mutant) bool { return m.name == name }) {
				fmt.Printf("accepted.txt: there is no such change any more: %s\n", name)
				survivors++
			}
		}
		chosen := slices.DeleteFunc(all, func(m mutant) bool { return !strings.Contains(m.name, match) })
		total := len(chosen)
		if sample > 0 && sample < total {
			rand.New(rand.NewPCG(seed, 0)).Shuffle(total, func(i, k int) { chosen[i], chosen[k] = chosen[k], chosen[i] })
			chosen = chosen[:sample]
			slices.SortFunc(chosen, func(a, b mutant) int { return cmp.Or(cmp.Compare(a.file, b.file), a.from-b.from) })
		}
		if list {
			for _, m := range chosen {
				fmt.Println(m.name)
			}
			continue
		}
		n, err := p.tryAll(chosen, total, until, accepted, results)
		if err != nil {
			return 0, err
		}
		survivors += n
	}
	return survivors, nil
}

// parseAccepted returns the reason of each accepted change. A line is the change, two blanks, # and the reason.
func parseAccepted(text string) (map[string]string, error) {
	accepted := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, "  # ")
		if !ok || accepted[name] != "" {
			return nil, fmt.Errorf("accepted.txt: want a change, two blanks, # and a reason, each change once: %s", line)
		}
		accepted[name] = reason
	}
	return accepted, nil
}
