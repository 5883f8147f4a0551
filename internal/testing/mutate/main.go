// Command mutate changes one thing at a time, each number, section, rule and question of the large specification and
// each condition and statement of the state machine, and says which changes no test notices.
//
//	go run ./internal/testing/mutate [-only spec,templates,gates,machine] [-sample N] [-match TEXT] [-survivors] [-quick]
//		[-for 10m] [-places N] [-list]
//
// It runs in the root of the project and leaves its files alone: a specification is changed in a copy of its folder, Go
// is compiled anew for each change, by -overlay. Do not edit what it tries while it runs.
// Results are kept in build/mutate: one that was noticed is looked at again when its file or the test that noticed it
// has changed, one that was not when any test has. accepted.txt holds the changes that no test can notice, or needs to,
// each with its reason; one that is noticed or does not exist any more must be taken out. What a line with * holds is
// left out.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	var c choice
	flag.StringVar(&c.only, "only", "spec,templates,gates,machine", "what is changed")
	flag.IntVar(&c.sample, "sample", 0, "try so many of each part, chosen by -seed; 0: all")
	flag.Uint64Var(&c.seed, "seed", 1, "of the sample")
	flag.StringVar(&c.match, "match", "", "try only changes that hold this text")
	flag.BoolVar(&c.again, "survivors", false, "try only what survived when it was last tried")
	flag.BoolVar(&c.quick, "quick", false,
		"try Go with the tests of its package alone; say what survives them, and keep nothing of it")
	flag.DurationVar(&c.limit, "for", 1000*time.Hour, "try changes for so long, then say what is known")
	flag.IntVar(&c.places, "places", runtime.NumCPU(), "try so many changes side by side")
	flag.BoolVar(&c.list, "list", false, "list the changes and try none")
	flag.Parse()
	survivors, err := c.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if survivors > 0 {
		os.Exit(1)
	}
}

// A choice is what to try.
type choice struct {
	only   string
	match  string
	again  bool
	sample int
	seed   uint64
	quick  bool
	limit  time.Duration
	places int
	list   bool
}

func (c choice) run() (survivors int, err error) {
	accepted, err := parseAccepted(acceptedLines)
	if err != nil {
		return 0, err
	}
	until := time.Now().Add(c.limit)
	results, err := openResults()
	if err != nil {
		return 0, err
	}
	for _, p := range parts() {
		if !slices.Contains(strings.Split(c.only, ","), p.name) {
			continue
		}
		p.quick = c.quick
		all, err := p.mutants()
		if err != nil {
			return 0, err
		}
		for i := range accepted {
			a := &accepted[i]
			if a.of(p.folder, p.files) && !slices.ContainsFunc(all, func(m mutant) bool { return a.holds(m.name) }) {
				fmt.Printf("accepted.txt: there is no such change any more: %s\n", a.name)
				survivors++
			}
		}
		chosen := slices.DeleteFunc(slices.Clone(all), func(m mutant) bool {
			return !strings.Contains(m.name, c.match) || c.again && results.all[m.name].What != survived
		})
		total := len(chosen)
		if c.sample > 0 && c.sample < total {
			swap := func(i, k int) { chosen[i], chosen[k] = chosen[k], chosen[i] }
			rand.New(rand.NewPCG(c.seed, 0)).Shuffle(total, swap)
			chosen = chosen[:c.sample]
			slices.SortFunc(chosen, func(a, b mutant) int {
				return cmp.Or(cmp.Compare(a.file, b.file), a.from-b.from)
			})
		}
		if c.list {
			for _, m := range chosen {
				fmt.Println(m.name)
			}
			continue
		}
		n, err := p.tryAll(all, chosen, until, c.places, accepted, results)
		if err != nil {
			return 0, err
		}
		survivors += n
	}
	return survivors, nil
}
