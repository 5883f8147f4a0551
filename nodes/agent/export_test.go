package agent

import (
	"context"
	"encoding/json"
	"time"

	"dagrun.dev/nodes"
)

// WithClock returns the kind with another clock.
func WithClock(now func() time.Time) nodes.Kind {
	k := Kind
	k.Parse = func(with json.RawMessage) (nodes.Settings, error) {
		s, err := read(with)
		if err == nil {
			s.now = now
		}
		return s, err
	}
	return k
}

// rescued ends an attempt as the next process does.
func rescued(t *nodes.Task) (*nodes.Result, error) {
	s, ok := nodes.Able[nodes.Rescuer](Kind, t.With)
	if !ok {
		return nil, nil
	}
	return s.Rescue(context.Background(), t)
}
