package machine

// Shapes returns an empty value of what stands on disk, by name: the payload of every event type,
// and the snapshot under "snapshot". It is for publishing their JSON Schemas.
func Shapes() map[string]any {
	m := map[string]any{"snapshot": snapshot{}}
	for _, t := range Types() {
		m[string(t)] = emptyBody(t)
	}
	return m
}

// Types returns all event types, in the order of their declaration.
func Types() []Type {
	return []Type{
		RunCreated, InputsCloned, PlanAdopted, PlanExtended, LimitsChanged,
		Queued, Started, Finished, LLMCallStarted, LLMCallFinished, LLMCallFailed,
		ArtifactWritten, GateRunStarted, GateRunFinished, IssueOpened, IssueResolved,
		RunStateChanged, PROpened, BreakerChanged, CompStarted, CompFinished, Rewound,
		EscalationOpened, EscalationAnswer, Checkpointed, Reverted, BudgetWarned,
		RunPaused, RunInterrupted, RunResumed, RunCompleted, RunFailed,
	}
}
