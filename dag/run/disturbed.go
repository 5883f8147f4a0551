package run

import "slices"

// Disturbed looks, after an attempt whose tools may reach the run's files, for what another program has changed of
// them since the last look: live artifacts, and the event log, whose change is *eventlog.Damaged. What it reports it
// does not report again. On the loop's goroutine only.
func (r *Run) Disturbed() (artifacts []string, err error) {
	if err := r.log.Check(); err != nil {
		return nil, err
	}
	list, err := r.Drift()
	for _, d := range list {
		if (d.Edited || d.Gone) && !slices.Contains(r.disturbed, d.Name) {
			artifacts = append(artifacts, d.Name)
		}
	}
	r.disturbed = append(r.disturbed, artifacts...)
	return artifacts, err
}
