package screenshot

import (
	"fmt"
	"path"
	"slices"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/browser"
)

// settings are #Screenshot in Go.
type settings struct {
	browser.View
	Shots    []string `json:"shots"`
	Scale    float64  `json:"scale"`
	Step     float64  `json:"step"`
	MaxSteps int      `json:"maxSteps"`
	Tile     int      `json:"tile"`
	MaxTiles int      `json:"maxTiles"`
	Blank    float64  `json:"blank"`
	To       string   `json:"to"`
	Manifest string   `json:"manifest"`
}

// Traits are what the compiler must know.
func (s *settings) Traits() nodes.Traits {
	tr := nodes.Traits{Effect: "pure", Outputs: map[string]string{
		"shots": "int", "blanks": "int", "maxConsecutiveBlanks": "int", "maxBlankShare": "number", "dpr": "number",
		"consoleErrors": "int", "warnings": "int", "degraded": "bool", "browser": "string", "viewports": "map",
	}}
	s.Source.Describe(&tr)
	if len(s.Viewports) == 0 {
		tr.Problemf("viewports", "want at least one, e.g. {width: 1440, height: 900}")
	}
	for i, v := range s.Viewports {
		if slices.Index(s.Viewports, v) != i {
			tr.Problemf(fmt.Sprintf("viewports.%d", i), "%v is named twice", v)
		}
	}
	tr.Notes = append(tr.Notes, "at "+browser.Sizes(s.Viewports))
	for i, shot := range s.Shots {
		if slices.Index(s.Shots, shot) != i {
			tr.Problemf(fmt.Sprintf("shots.%d", i), "%s is named twice", shot)
		}
	}
	if len(s.Shots) == 0 {
		tr.Problemf("shots", "want at least one of viewport, full, scroll")
	}
	tr.Write("to", s.To)
	tr.Write("manifest", s.Manifest)
	if s.To != "" && path.Ext(s.To) != ".zip" {
		tr.Problemf("to", "is a ZIP archive; want a name that ends in .zip")
	}
	return tr
}
