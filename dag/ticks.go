package dag

// Ticks say that the work of a pipeline never ends: each tick is a run of its own, and the next one begins where files
// have changed, or time has passed. What outlives a tick stands in files that its nodes read and publish.
type Ticks struct {
	// Idle is the state that milestones declare in a tick with nothing to do. Such a tick is not kept.
	Idle   string   `json:"idle"`
	Every  Duration `json:"every,omitzero"`  // between an idle tick and the next, when no file changes; 0 = no limit
	Settle Duration `json:"settle,omitzero"` // how long files are still before a change counts; 0 = 500ms
	Keep   Keep     `json:"keep,omitzero"`   // of ticks that have ended
	PerDay DayLimit `json:"perDay,omitzero"`
}

// Keep bounds what is kept of ended ticks, by number and by age. Zero: no such bound.
type Keep struct {
	Runs int      `json:"runs,omitempty"`
	For  Duration `json:"for,omitzero"`
}

// DayLimit bounds what the ticks of one day (UTC) may spend together.
type DayLimit struct {
	USD USD `json:"usd,omitzero"`
}
