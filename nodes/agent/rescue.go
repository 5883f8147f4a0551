package agent

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"dagrun.dev/nodes"
)

var _ nodes.Rescuer = Kind{}

// Rescue ends an attempt by what its provider had printed or sent when the process that asked
// died: the answer goes through accept as it would have. Nothing is asked.
func (k Kind) Rescue(_ context.Context, t *nodes.Task) (*nodes.Result, error) {
	s, p, steps, err := prepare(t)
	if err != nil {
		return nil, nil // the plan was accepted with these settings: what was written of them is damaged
	}
	q := &question{task: t, set: s, now: k.clock()}
	if s.Session != "" && t.Carry != nil {
		if q.session, err = lastSession(t); err != nil || q.session.ID == "" {
			return nil, nil
		}
	}
	q.folder = q.base(workName)
	r, err := p.recall(q)
	if err != nil || r == nil || settle(q, r) != nil {
		return nil, nil
	}
	if r.Failure != nil && r.Failure.Category == "lost" {
		res := &nodes.Result{Usage: r.Usage}
		models(s, r, res)
		return res, r.Failure
	}
	res, err := finish(t, s, steps, r, &nodes.Result{})
	q.session.settle(r, res, err)
	if r.Doubt != nil && err != nil && r.Doubt.Category != cutShort {
		return nil, nil // it may have been cut
	}
	err = advise(s, harmless(res, err))
	if failed := tell(q, r, r.Latency.Milliseconds()); failed != nil {
		return nil, nil
	}
	return res, err
}

// knowSecrets makes the secrets of the settings known to the host, which masks what is kept.
func (q *question) knowSecrets() error {
	for _, name := range slices.Sorted(maps.Keys(q.set.Secrets)) {
		if _, err := q.task.Secret(q.set.Secrets[name]); err != nil {
			return err
		}
	}
	return nil
}

// lasted sets the reply's latency to the time from when the spool was made ready to the last
// change of a file in it.
func (r *reply) lasted(spool, name string) error {
	begin, err := os.Stat(spool)
	if err != nil {
		return err
	}
	end, err := os.Stat(filepath.Join(spool, name))
	if err != nil {
		return err
	}
	r.Latency = max(0, end.ModTime().Sub(begin.ModTime()))
	return nil
}
