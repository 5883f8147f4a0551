package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/http"
)

// post is a kind that is given messages and does what a script says, one step a message, the last one for ever.
type post struct {
	mu  sync.Mutex
	got []string // on and seq
	do  []string // ok | fail | hang | panic
}

func (*post) Traits() nodes.Traits { return nodes.Traits{} }
func (*post) Message(_ json.RawMessage, message []byte) (json.RawMessage, error) {
	return message, nil
}

func (p *post) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	var m told
	if err := json.Unmarshal(t.With, &m); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.got = append(p.got, m.On)
	step := p.do[min(len(p.got), len(p.do))-1]
	p.mu.Unlock()
	switch step {
	case "fail":
		return nil, nodes.Fail("transient", "nobody there")
	case "hang":
		<-ctx.Done()
		return nil, ctx.Err()
	case "panic":
		panic("as the script says")
	}
	return nil, nil
}

// L-1: whoever is to be told holds nothing up. It is tried five times, then given up; what follows is tried once until
// something arrives; what hangs is cut, and what was not told by the end is told by the next start.
func TestNotifyHoldsNothingUp(t *testing.T) {
	plan := func() *dag.Plan {
		return &dag.Plan{Notify: []dag.Notify{{Kind: "post", Timeout: dag.Duration(30 * time.Second)}}, Nodes: []dag.Node{
			{ID: "a", OnFail: "continue", With: script("fail:refused")},
			{ID: "b", Needs: []string{"a"}, OnFail: "continue", With: script("sleep:1m")},
			{ID: "c", Needs: []string{"b"}, OnFail: "continue", With: script("fail:refused")},
		}}
	}
	for _, tt := range []struct {
		do      []string
		got     string // at the end of the first process
		pending int
		took    time.Duration
		notes   []string // NOTIFIED
	}{
		{[]string{"ok"}, "fail fail end", 0, time.Minute, []string{"1", "1", "1"}},
		{[]string{"fail", "panic", "ok"}, "fail fail fail fail end", 0, time.Minute, []string{"3", "1", "1"}},
		{[]string{"fail"}, "fail fail fail fail fail fail end", 0, time.Minute,
			[]string{"5 nobody there", "1 nobody there", "1 nobody there"}},
		{[]string{"fail", "fail", "fail", "fail", "fail", "ok"}, "fail fail fail fail fail fail end", 0, time.Minute,
			[]string{"5 nobody there", "1", "1"}},
		{[]string{"hang", "hang", "ok"}, "fail fail fail fail end", 0, time.Minute + 3*time.Second,
			[]string{"3", "1", "1"}},
		{[]string{"hang"}, "fail fail fail", 3, time.Minute + 10*time.Second, nil},
	} {
		onStage(t, plan(), func(s *stage) {
			p := &post{do: tt.do}
			s.kinds = append(s.kinds, kindOf("post", p))
			v := s.carryOn()
			if took := time.Since(s.began); v.Status != machine.RunDone || took != tt.took {
				t.Errorf("%v: the run is %s after %v, want completed after %v", tt.do, v.Status, took, tt.took)
			}
			s.want("start a.1", "failed a.1 refused", "start b.1", "completed b.1", "start c.1", "failed c.1 refused", "ended")
			if got := strings.Join(p.got, " "); got != tt.got {
				t.Errorf("%v: told %s, want %s", tt.do, got, tt.got)
			}
			if got := notified(s); !slices.Equal(got, tt.notes) {
				t.Errorf("%v: recorded %q, want %q", tt.do, got, tt.notes)
			}
			r := s.open()
			if n := len(r.State().Notices()); n != tt.pending {
				t.Errorf("%v: %d are to be told, want %d", tt.do, n, tt.pending)
			}
			p.got, p.do = nil, []string{"ok"}
			if err := s.run(r); err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil || len(p.got) != tt.pending {
				t.Errorf("%v: the next start told %v, %v", tt.do, p.got, err)
			}
		})
	}
}

// notified are the events that record who was told.
func notified(s *stage) (list []string) {
	for _, body := range s.bodies {
		if b, ok := body.(*machine.NotifiedBody); ok {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%d %s", b.Tries, b.Error)))
		}
	}
	return list
}

// A receiver of requests that hangs, and one that fails, is asked again; the message is the event, without secrets.
func TestNotifyByRequest(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked int
	var body, auth string
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		raw, _ := io.ReadAll(r.Body)
		switch asked {
		case 1:
			<-r.Context().Done()
		case 2:
			w.WriteHeader(500)
		default:
			body, auth = r.Method+" "+string(raw), r.Header.Get("Authorization")
		}
	}))
	defer server.Close()
	with, err := json.Marshal(map[string]any{"url": server.URL, "secrets": map[string]string{"Authorization": "hook"}})
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, &dag.Plan{
		Notify: []dag.Notify{{On: []string{"fail"}, Kind: "http", With: with, Secrets: []string{"hook"},
			Timeout: dag.Duration(300 * time.Millisecond)}},
		Nodes: []dag.Node{{ID: "a", OnFail: "continue", With: script("fail:refused")}},
	})
	s.kinds = []nodes.Kind{http.Kind}
	s.opts.Secret = func(string) (string, error) { return "s3cret-value", nil }
	s.carryOn()
	if got := notified(s); !slices.Equal(got, []string{"3"}) {
		t.Errorf("recorded %q", got)
	}
	if !strings.HasPrefix(body, `POST {"kind":"notice","on":"fail","pipeline":"test"`) ||
		!strings.Contains(body, `"message":"as the script says"`) || auth != "s3cret-value" {
		t.Errorf("the request was %s with %q", body, auth)
	}
}

// L-1: for a receiver who is gone no more waits than is declared, whatever happens and however often the run is resumed; who
// comes back is told how many it missed, and so do the logs. Others miss nothing.
func TestNoticesAreBounded(t *testing.T) {
	p := &dag.Plan{Notify: []dag.Notify{{On: []string{"fail"}, Kind: "post", Most: 3, Timeout: dag.Duration(30 * time.Second)}}}
	for k := range 9 {
		n := dag.Node{ID: fmt.Sprintf("n%d", k), OnFail: "continue", With: script("fail:refused")}
		if k > 0 {
			n.Needs = []string{fmt.Sprintf("n%d", k-1)}
		}
		p.Nodes = append(p.Nodes, n)
	}
	onStage(t, p, func(s *stage) {
		gone := &post{do: []string{"hang"}}
		s.kinds = append(s.kinds, kindOf("post", gone))
		s.carryOn()
		r := s.open()
		waits := r.State().Notices()
		if len(waits) != 3 || waits[0].Missed != 0 || waits[1].Missed != 6 || waits[2].Missed != 0 || r.State().Missed() != 6 {
			t.Fatalf("%d wait: %+v", len(waits), waits)
		}
		gone.got, gone.do = nil, []string{"ok"}
		if err := s.run(r); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil || len(gone.got) != 3 {
			t.Errorf("told %v, %v", gone.got, err)
		}
		missed := 0
		for _, body := range s.bodies {
			if b, ok := body.(*machine.NotifiedBody); ok {
				missed += b.Missed
			}
		}
		if missed != 6 {
			t.Errorf("%d are recorded as missed", missed)
		}
	})
}
