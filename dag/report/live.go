package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/printable"
)

// livePieces are the parts of a status that are drawn while a run is carried on, from top to bottom, by their
// templates. Where a terminal is low, those of the highest rank give way first.
var livePieces = []struct {
	name string
	rank int
}{
	{"head", 0}, {"part", 4}, {"new-plan", 3}, {"progress", 1}, {"now", 3}, {"remaining", 2}, {"cost", 2},
	{"tokens", 4}, {"live-shares", 4}, {"live-trends", 4}, {"answers", 4}, {"running", 1}, {"waiting", 5},
	{"failures", 3}, {"troubles", 3}, {"breakers", 2}, {"open-questions", 1},
}

// labelled is how wide the labels of a status are.
const labelled = 13

// Live is the status on at most so many rows, none wider than so many columns: what somebody who looks at a running run
// wants to know first.
func (s *Status) Live(columns, rows int) []string {
	pieces := make([][]string, len(livePieces))
	for i, p := range livePieces {
		pieces[i] = s.drawn(p.name, columns)
	}
	for rank := range len(livePieces) {
		for i, p := range livePieces {
			if p.rank != rank {
				continue
			}
			most := max(rows, 0)
			if rank > 0 {
				most = min(most, max(rows/3, 1))
			}
			if len(pieces[i]) > most {
				pieces[i] = shortened(pieces[i], most)
			}
			rows -= len(pieces[i])
		}
	}
	return slices.Concat(pieces...)
}

// Whole is all of the status where it fits on so many rows, else what Live has.
func (s *Status) Whole(columns, rows int) []string {
	if lines := s.drawn("status", columns); len(lines) <= rows {
		return lines
	}
	return s.Live(columns, rows)
}

// drawn is a template's text of the status on lines of at most so many columns.
func (s *Status) drawn(name string, columns int) (lines []string) {
	var text bytes.Buffer
	if err := write(&text, name, s); err != nil {
		return []string{err.Error()}
	}
	for line := range strings.Lines(text.String()) {
		lines = append(lines, printable.Wrap(strings.TrimSuffix(line, "\n"), columns, labelled)...)
	}
	return lines
}

// shortened is a list on fewer lines, the last of which says how many are missing.
func shortened(lines []string, most int) []string {
	if most < 2 {
		return lines[:most]
	}
	return append(lines[:most-1:most-1], fmt.Sprintf("%*sand %d more", labelled, "", len(lines)-most+1))
}

// Later is the status as it is at a later instant, when nothing has happened but that time went by.
func (s *Status) Later(now time.Time) *Status {
	later, sec := *s, now.Sub(s.now).Seconds()
	later.now, later.Running = now, slices.Clone(s.Running)
	for i := range later.Running {
		later.Running[i].Seconds += sec
	}
	if s.Status != machine.RunRunning && s.Status != machine.RunEnding {
		return &later
	}
	later.Active += sec
	if s.ETA != nil {
		eta := max(0, *s.ETA-sec)
		later.ETA = &eta
	}
	return &later
}
