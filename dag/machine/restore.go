package machine

import (
	"fmt"

	"dagrun.dev/dag"
)

// restore is the inverse of snapshot.
func (s *State) restore(v *snapshot, g *dag.Graph) error {
	if v.Schema > Schema {
		return fmt.Errorf("schema version %d is newer than %d, the newest this version reads", v.Schema, Schema)
	}
	for _, x := range v.Extended {
		var err error
		if g, err = g.Extend(x.Node, x.Nodes); err != nil {
			return err
		}
	}
	s.run = runFacts{id: v.RunID, name: v.Name, planDigest: v.PlanDigest, seed: v.Seed, seq: v.Seq,
		created: ms(v.Created), updated: ms(v.Updated), status: v.Status, pause: v.Pause, failed: v.Failed, ending: v.Ending,
		active: v.Active, activeFrom: ms(v.From), resumes: v.Resumes, undos: v.Undos}
	s.expansions = v.Extended
	s.errors = v.Errors
	s.retired = v.Retired
	for k := range s.retired {
		s.indexRetired(s.retired[k].ID, k)
	}
	s.world = world{inputs: v.Inputs, state: v.RunState, stable: v.Stable, sections: v.Sections, gates: v.Gates, issues: v.Issues,
		prs: v.PRs, reverts: v.Reverts, compensations: v.Compensations, calls: v.Calls}
	s.restoreLedger(&v.Ledger)
	s.restoreLists(v)
	if err := s.restoreRows(v, g); err != nil {
		return err
	}
	if err := s.restoreSpares(v); err != nil {
		return err
	}
	s.undoNode, s.undoing = -1, -1
	if v.UndoNode != "" {
		i, ok := g.Index(v.UndoNode)
		if !ok {
			return fmt.Errorf("node %s is not in the plan", v.UndoNode)
		}
		s.undoNode = i
	}
	s.build(g)
	return nil
}

func (s *State) restoreLedger(v *ledgerSnap) {
	l := &s.ledger
	l.budget, l.spent, l.usage, l.assumed, l.grown, l.labels = v.Budget, v.Spent, v.Usage, v.Assumed, v.Grown, v.Labels
	if v.WarnUSD {
		l.warned.USD = 1
	}
	if v.WarnTok {
		l.warned.Tokens = 1
	}
	l.labelAt = make(map[string]int, len(l.labels))
	for k := range l.labels {
		l.labelAt[l.labels[k].Label+"\x00"+l.labels[k].Value] = k
	}
}

func (s *State) restoreLists(v *snapshot) {
	for k := range v.Breakers {
		s.breakers = append(s.breakers, v.Breakers[k].breaker())
	}
	for k := range v.Escalations {
		q := &v.Escalations[k]
		s.questions = append(s.questions, question{q.Question, ms(q.Opened), q.Answer, ms(q.Answered), q.Withdrawn})
		s.indexQuestion(k)
	}
	for _, c := range v.Checkpoints {
		s.world.checkpoints = append(s.world.checkpoints, CheckpointView{c.Checkpoint, c.Seq, c.Time})
	}
}

func (s *State) restoreRows(v *snapshot, g *dag.Graph) error {
	s.recs = make([]rec, g.Len())
	for i := range s.recs {
		s.recs[i] = rec{gen: 1, items: notExpanded}
	}
	for k := range v.WorkItems {
		row := &v.WorkItems[k]
		i, ok := g.Index(row.ID)
		if !ok {
			return fmt.Errorf("node %s is not in the plan", row.ID)
		}
		if err := row.fill(&s.recs[i], ms(v.Created)); err != nil {
			return fmt.Errorf("node %s: %w", row.ID, err)
		}
	}
	return s.restorePlain(&v.Plain, g, ms(v.Created))
}

func (s *State) restorePlain(v *plainSnap, g *dag.Graph, created int64) error {
	if n := len(v.ID); len(v.Start) != n || len(v.End) != n || len(v.EndSeq) != n || len(v.Print) != n {
		return fmt.Errorf("the lists of the plain work items differ in length")
	}
	for k, id := range v.ID {
		i, ok := g.Index(id)
		if !ok {
			return fmt.Errorf("node %s is not in the plan", id)
		}
		r := &s.recs[i]
		r.phase, r.end, r.attempt, r.fingerprint = ended, endCompleted, 1, v.Print[k]
		r.started, r.finished, r.endSeq = created+v.Start[k], created+v.End[k], v.EndSeq[k]
	}
	return nil
}

func (s *State) restoreSpares(v *snapshot) error {
	for k := range v.Spares {
		x := detached{Item: v.Spares[k].Item.ID, Of: v.Spares[k].Of, Root: v.Spares[k].Root, rec: rec{gen: 1, items: notExpanded}}
		if err := v.Spares[k].Item.fill(&x.rec, ms(v.Created)); err != nil {
			return fmt.Errorf("node %s: %w", x.Item, err)
		}
		s.detached = append(s.detached, x)
	}
	return nil
}

func (v *nodeSnap) fill(r *rec, created int64) error {
	r.attempt, r.cond, r.endSeq, r.fingerprint, r.more = 1, v.Cond, v.EndSeq, v.Print, v.More.more()
	if v.Gen != 0 {
		r.gen = v.Gen
	}
	if v.Attempt != nil {
		r.attempt = *v.Attempt
	}
	if v.Items != nil {
		r.items = *v.Items
	}
	if v.Start != nil {
		r.started = created + *v.Start
	}
	if v.End != nil {
		r.finished = created + *v.End
	}
	return setPhase(r, v.Status)
}

func (b *breaker) snap() breakerSnap {
	return breakerSnap{Change: b.last(), Changed: at(b.changed), Since: at(b.since), Pending: b.pending, Epoch: b.epoch, Openings: b.openings,
		Hold: at(b.hold), Opened: at(b.opened), Started: at(b.started), Question: b.question, Answer: b.answer}
}

func (v *breakerSnap) breaker() breaker {
	b := breaker{name: v.Change.Breaker, until: ms(v.Change.Until), counts: v.Change.Counts, recent: v.Change.Recent, cause: v.Change.Cause,
		changed: ms(v.Changed), since: ms(v.Since), pending: v.Pending, epoch: v.Epoch, openings: v.Openings,
		hold: ms(v.Hold), opened: ms(v.Opened), started: ms(v.Started), question: v.Question, answer: v.Answer}
	for k, name := range breakerNames {
		if name == v.Change.State {
			b.state = breakerState(k)
		}
	}
	return b
}
