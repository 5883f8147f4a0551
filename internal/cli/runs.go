package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

func makeRuns(c *cobra.Command) {
	var runs runFlags
	c.RunE = func(c *cobra.Command, _ []string) error {
		list := []runLine{}
		for _, dir := range runs.places(true) {
			list = append(list, runs.line(dir))
		}
		slices.SortStableFunc(list, func(a, b runLine) int { return b.Updated.Compare(a.Updated) })
		return show(c, runList{list})
	}
	runs.addState(c)
}

// line reads how the run in a directory stands.
func (f *runFlags) line(dir string) runLine {
	l := runLine{Dir: dir, Name: filepath.Base(dir)}
	r, _, err := run.OpenReadOnly(f.options(dir, "runs"))
	if err != nil {
		l.Problem = strings.SplitN(err.Error(), "\n", 2)[0]
		return l
	}
	defer r.Close()
	v, counts := r.State().Run(), report.NewCounts(r.State())
	l.Name, l.RunID, l.Status, l.Created, l.Updated = v.Name, v.ID, v.Status, v.Created, v.Updated
	l.CostUSD, l.Ended, l.Nodes = r.State().Spent().USD, counts.Ended(), counts.Nodes
	l.Stopped = (v.Status == machine.RunRunning || v.Status == machine.RunEnding) && !r.Held()
	return l
}

// readAge reads days (30d) or a duration (12h).
func readAge(text string) (time.Duration, error) {
	v, err := time.ParseDuration(text)
	if n, ok := strings.CutSuffix(text, "d"); ok {
		var count uint64
		count, err = strconv.ParseUint(n, 10, 16)
		v = time.Duration(count) * 24 * time.Hour
	}
	if err != nil || v < 0 {
		return 0, fmt.Errorf("--older-than %s: want days or a duration, such as 30d or 12h", text)
	}
	return v, nil
}

func makePrune(c *cobra.Command) {
	var runs runFlags
	var yes, dry bool
	var older string
	c.RunE = func(c *cobra.Command, _ []string) error {
		if yes && dry {
			return errors.New("--dry-run removes nothing: leave out --yes")
		}
		age, err := readAge(older)
		if err != nil {
			return err
		}
		before := time.Now().Add(-age)
		list, err := runs.prune(before, false, nil)
		p := pruned{Before: before.UTC(), Found: list}
		if p.sum(); dry || p.Count == 0 {
			return errors.Join(err, show(c, p))
		}
		if !yes {
			if err := canConfirm(c); err != nil {
				return err
			}
			err = errors.Join(err, writeView(c.OutOrStdout(), p, "pruned"))
			if yes, no := confirm(c, "Remove them?"); !yes || no != nil {
				return errors.Join(err, no, exitWith(exitBad))
			}
		}
		p.Removed = true
		p.Found, err = runs.prune(before, true, list)
		p.sum()
		return errors.Join(err, show(c, p))
	}
	runs.addState(c)
	c.Flags().StringVar(&older, "older-than", "30d", "how long ago the last event must be, in days (30d) or as a duration")
	c.Flags().BoolVar(&yes, "yes", false, "remove without asking")
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be removed")
}

// prune looks at all output directories, and removes what is found there if it is among what was shown. An error in one
// directory keeps no other from being looked at.
func (f *runFlags) prune(before time.Time, remove bool, shown []prunedRun) (found []prunedRun, failed error) {
	dirs := f.places(false)
	if f.dir != "" {
		dirs = []string{f.dir}
	}
	found = []prunedRun{}
	for _, dir := range dirs {
		if remove && !slices.ContainsFunc(shown, func(x prunedRun) bool { return x.Dir == dir && x.Kept == "" }) {
			continue
		}
		current := f.dir == "" && f.isCurrent(dir)
		list, err := run.Prune(f.options(dir, "runs prune"), before, remove && !current)
		failed = errors.Join(failed, err)
		for _, x := range list {
			if current {
				x.Kept = cmp.Or(x.Kept, "it is the current one")
			}
			found = append(found, prunedRun{dir, x})
		}
	}
	return found, failed
}

// sum counts what is removed.
func (p *pruned) sum() {
	p.Count, p.Bytes = 0, 0
	for _, x := range p.Found {
		if x.Kept == "" {
			p.Count, p.Bytes = p.Count+1, p.Bytes+x.Bytes
		}
	}
}

// Place is where it is.
func (x prunedRun) Place() string { return filepath.Join(x.Dir, filepath.FromSlash(x.Path)) }

// canConfirm is an error where nobody can be asked.
func canConfirm(c *cobra.Command) error {
	if !canAsk(c.InOrStdin(), c.OutOrStdout()) || asJSON(c) {
		return errors.New("nothing was removed: --yes removes without asking, --dry-run only shows what there is")
	}
	return nil
}

// confirm asks the user at the terminal.
func confirm(c *cobra.Command, question string) (bool, error) {
	fmt.Fprint(c.OutOrStdout(), question+" [y/N] ")
	answer, err := bufio.NewReader(c.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}
